#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace gdrbench::memory {

/// The library of GDRCopy, if it is installed, loaded at run time: it maps GPU memory through the BAR, so
/// that the CPU copies by itself. Functions as in its header gdrapi.h, version 2.
class GdrLibrary {
 public:
  /// Throws Unavailable with the reason: no library, a function missing, or no gdrdrv module.
  GdrLibrary();
  ~GdrLibrary();
  GdrLibrary(const GdrLibrary&) = delete;
  GdrLibrary& operator=(const GdrLibrary&) = delete;

  struct Handle {
    unsigned long value;
  };
  struct Functions {
    void* (*open)();
    int (*close)(void*);
    int (*pin_buffer)(void*, unsigned long, std::size_t, std::uint64_t, std::uint32_t, Handle*);
    int (*unpin_buffer)(void*, Handle);
    int (*map)(void*, Handle, void**, std::size_t);
    int (*unmap)(void*, Handle, void*, std::size_t);
    int (*copy_to_mapping)(Handle, void*, const void*, std::size_t);
    int (*copy_from_mapping)(Handle, void*, const void*, std::size_t);
  };
  const Functions& functions() const { return functions_; }
  void* session() const { return session_; }

 private:
  struct CloseLibrary {
    void operator()(void* library) const noexcept;
  };
  std::unique_ptr<void, CloseLibrary> library_;
  Functions functions_{};
  void* session_ = nullptr;
};

/// Why GDRCopy cannot be used here; empty when it can.
std::string gdrcopy_unavailable();

/// GPU memory that the CPU can copy from and to.
class GdrMapping {
 public:
  /// Maps the 64 KiB pages of the range. Throws Unavailable.
  GdrMapping(const std::byte* address, std::uint64_t length);
  ~GdrMapping();
  GdrMapping(const GdrMapping&) = delete;
  GdrMapping& operator=(const GdrMapping&) = delete;

  /// `gpu` lies in the range. Throws Error.
  void write(std::byte* gpu, const std::byte* from, std::uint64_t length) const;
  void read(std::byte* to, const std::byte* gpu, std::uint64_t length) const;

 private:
  std::byte* mapped(const std::byte* gpu) const { return mapping_ + (gpu - first_); }

  GdrLibrary library_;
  const std::byte* first_ = nullptr;
  std::uint64_t length_ = 0;
  GdrLibrary::Handle handle_{};
  std::byte* mapping_ = nullptr;
};

}  // namespace gdrbench::memory
