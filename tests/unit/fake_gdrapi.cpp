// A GDRCopy library whose GPU memory is any memory of the process. Its mappings lie elsewhere, as with a GPU.
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

int session, pinned, mapped;
struct Handle {
  unsigned long value;
};
constexpr std::uint64_t away = std::uint64_t{1} << 56;

}  // namespace

extern "C" {

void* gdr_open() {
  return std::getenv("FAKE_GDR_NO_MODULE") != nullptr ? nullptr : &session;
}
int gdr_close(void* of) {
  return of == &session ? 0 : EINVAL;
}
int gdr_pin_buffer(void* of, unsigned long address, std::size_t size, std::uint64_t /*token*/,
                   std::uint32_t /*space*/, Handle* handle) {
  if (of != &session || address % 65536 != 0 || size % 65536 != 0) return EINVAL;
  if (std::getenv("FAKE_GDR_REFUSE") != nullptr) return ENOMEM;
  ++pinned;
  handle->value = address;
  return 0;
}
int gdr_unpin_buffer(void* /*of*/, Handle /*handle*/) {
  --pinned;
  return 0;
}
int gdr_map(void* /*of*/, Handle handle, void** mapping, std::size_t /*size*/) {
  ++mapped;
  *mapping = reinterpret_cast<void*>(handle.value + away);
  return 0;
}
int gdr_unmap(void* /*of*/, Handle /*handle*/, void* /*mapping*/, std::size_t /*size*/) {
  --mapped;
  return 0;
}
int gdr_copy_to_mapping(Handle /*handle*/, void* to, const void* from, std::size_t size) {
  std::memcpy(reinterpret_cast<void*>(reinterpret_cast<std::uint64_t>(to) - away), from, size);
  return 0;
}
int gdr_copy_from_mapping(Handle /*handle*/, void* to, const void* from, std::size_t size) {
  std::memcpy(to, reinterpret_cast<const void*>(reinterpret_cast<std::uint64_t>(from) - away), size);
  return 0;
}

int fake_gdr_in_use() {
  return pinned + mapped;
}

}  // extern "C"
