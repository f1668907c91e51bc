#include "memory/gdrcopy.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdio>

#include "gdrbench/error.hpp"

namespace gdrbench::memory {
namespace {

constexpr const char* library_name = "libgdrapi.so.2";
constexpr std::uint64_t gpu_page_bytes = 64 << 10;  // GPU_PAGE_SIZE of gdrapi.h

template <class Function>
void find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function == nullptr) throw Unavailable(fmt::format("{} has no {}: it is too old", library_name, name));
}

void log_failure(int code, const char* tried) {
  if (code != 0) std::fprintf(stderr, "%s: %s\n", tried, errno_name(code).c_str());
}

}  // namespace

void GdrLibrary::CloseLibrary::operator()(void* library) const noexcept {
  dlclose(library);
}

GdrLibrary::GdrLibrary() : library_(dlopen(library_name, RTLD_NOW | RTLD_LOCAL)) {
  if (!library_)
    throw Unavailable(
        fmt::format("GDRCopy's {} is not installed; use another --staging-engine", library_name));
  void* const library = library_.get();
  find(library, "gdr_open", functions_.open);
  find(library, "gdr_close", functions_.close);
  find(library, "gdr_pin_buffer", functions_.pin_buffer);
  find(library, "gdr_unpin_buffer", functions_.unpin_buffer);
  find(library, "gdr_map", functions_.map);
  find(library, "gdr_unmap", functions_.unmap);
  find(library, "gdr_copy_to_mapping", functions_.copy_to_mapping);
  find(library, "gdr_copy_from_mapping", functions_.copy_from_mapping);
  session_ = functions_.open();
  if (session_ == nullptr)
    throw Unavailable(
        "gdr_open failed: the module gdrdrv is not loaded (modprobe gdrdrv), or /dev/gdrdrv is not "
        "accessible "
        "or not mapped into this container");
}

GdrLibrary::~GdrLibrary() {
  if (session_ != nullptr) log_failure(functions_.close(session_), "gdr_close");
}

std::string gdrcopy_unavailable() {
  try {
    const GdrLibrary library;
    return "";
  } catch (const Unavailable& why) {
    return why.what();
  }
}

GdrMapping::GdrMapping(const std::byte* address, std::uint64_t length) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t first = begin / gpu_page_bytes * gpu_page_bytes;
  first_ = address - (begin - first);
  length_ = (begin + length - first + gpu_page_bytes - 1) / gpu_page_bytes * gpu_page_bytes;
  const auto& gdr = library_.functions();
  if (const int code = gdr.pin_buffer(library_.session(), first, length_, 0, 0, &handle_); code != 0)
    throw Unavailable(
        fmt::format("gdr_pin_buffer of {} bytes of GPU memory: {}; the BAR1 of the GPU may be smaller",
                    length_, errno_name(code)));
  void* mapping = nullptr;
  if (const int code = gdr.map(library_.session(), handle_, &mapping, length_); code != 0) {
    log_failure(gdr.unpin_buffer(library_.session(), handle_), "gdr_unpin_buffer");
    throw Unavailable(fmt::format("gdr_map of {} bytes of GPU memory: {}", length_, errno_name(code)));
  }
  mapping_ = static_cast<std::byte*>(mapping);
}

GdrMapping::~GdrMapping() {
  const auto& gdr = library_.functions();
  log_failure(gdr.unmap(library_.session(), handle_, mapping_, length_), "gdr_unmap");
  log_failure(gdr.unpin_buffer(library_.session(), handle_), "gdr_unpin_buffer");
}

void GdrMapping::write(std::byte* gpu, const std::byte* from, std::uint64_t length) const {
  if (const int code = library_.functions().copy_to_mapping(handle_, mapped(gpu), from, length); code != 0)
    throw Error(fmt::format("gdr_copy_to_mapping of {} bytes: {}", length, errno_name(code)));
}

void GdrMapping::read(std::byte* to, const std::byte* gpu, std::uint64_t length) const {
  if (const int code = library_.functions().copy_from_mapping(handle_, to, mapped(gpu), length); code != 0)
    throw Error(fmt::format("gdr_copy_from_mapping of {} bytes: {}", length, errno_name(code)));
}

}  // namespace gdrbench::memory
