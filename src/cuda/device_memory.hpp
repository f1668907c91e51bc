#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace gdrbench::cuda {

/// GPU memory is pinned for other devices in pages of 64 KiB ("Developing a Linux Kernel Module using
/// GPUDirect RDMA", NVIDIA), whatever the host's page size; this or the host's page, whichever is larger.
std::uint64_t rdma_page_bytes();

struct FreeDeviceMemory {
  void operator()(void* allocation) const noexcept;
};

/// cudaMalloc memory that starts on an RDMA page and shares none with another allocation, with SYNC_MEMOPS
/// set: copies by synchronous calls are then finished before a NIC may look.
class DeviceMemory {
 public:
  /// `length` in bytes. Throws Unavailable or CudaError.
  DeviceMemory(int gpu, std::uint64_t length);
  std::byte* address() const { return address_; }

 private:
  std::unique_ptr<void, FreeDeviceMemory> allocation_;
  std::byte* address_ = nullptr;
};

}  // namespace gdrbench::cuda
