#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "cuda/memory.hpp"
#include "cuda/pattern.hpp"
#include "cuda/pointer.hpp"
#include "gdrbench/memory.hpp"

namespace gdrbench::memory {

/// Anonymous memory in whole pages, all of them present from the start, so that no page fault falls into a
/// measurement.
class HostMapping {
 public:
  /// Throws SystemError when the length is above what the host has available, or the kernel refuses it.
  /// `huge_pages`: of 2 MiB where enough of them are free, else the ordinary ones.
  HostMapping(std::uint64_t length, bool huge_pages);
  ~HostMapping();
  HostMapping(const HostMapping&) = delete;
  HostMapping& operator=(const HostMapping&) = delete;

  std::byte* address() const { return address_; }
  /// Bytes mapped: whole pages.
  std::uint64_t length() const { return length_; }

 private:
  std::byte* address_ = nullptr;
  std::uint64_t length_ = 0;
};

}  // namespace gdrbench::memory

namespace gdrbench {

/// One of host, device and vmm is there. What refers to it comes after it, so that it goes first.
struct Buffer::Backing {
  std::optional<memory::HostMapping> host;
  std::optional<cuda::DeviceMemory> device;
  std::optional<cuda::VmmMemory> vmm;
  std::optional<cuda::HostRegistration> pinned;
  std::optional<cuda::Dmabuf> dmabuf;
  std::optional<cuda::PatternKernels> kernels;  ///< of GPU memory
};

/// What the test pattern needs of a buffer of GPU memory.
struct BufferKernels {
  static cuda::PatternKernels& of(const Buffer& buffer) { return *buffer.backing_->kernels; }
};

}  // namespace gdrbench
