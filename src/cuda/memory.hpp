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

struct UnmapVmmMemory {
  std::uint64_t length = 0;
  void operator()(void* address) const noexcept;
};

/// cuMemCreate memory, mapped for reading and writing by its GPU and asked to be RDMA capable where the
/// device offers that.
class VmmMemory {
 public:
  /// `length` in bytes. Throws Unavailable or CudaError.
  VmmMemory(int gpu, std::uint64_t length);
  std::byte* address() const { return static_cast<std::byte*>(mapping_.get()); }

 private:
  std::unique_ptr<void, UnmapVmmMemory> mapping_;
};

struct FreePinnedMemory {
  void operator()(void* address) const noexcept;
};

/// Zeroed host memory that kernels of every GPU reach at the same address (cudaHostAlloc, portable and
/// mapped). Making and freeing it waits for kernels of this process, so none may be waiting for the host.
class PinnedMemory {
 public:
  /// `length` in bytes. Throws Unavailable or CudaError.
  PinnedMemory(int gpu, std::uint64_t length);
  std::byte* address() const { return static_cast<std::byte*>(address_.get()); }

 private:
  std::unique_ptr<void, FreePinnedMemory> address_;
};

struct UnregisterHostMemory {
  void operator()(void* address) const noexcept;
};

/// Host memory pinned for the copy engines of every GPU (cudaHostRegister) as long as this lives. It stays
/// host memory: a NIC that reads it does no GPUDirect RDMA.
class HostRegistration {
 public:
  /// Whole pages. Throws Unavailable or CudaError.
  HostRegistration(int gpu, std::byte* address, std::uint64_t length);

 private:
  std::unique_ptr<void, UnregisterHostMemory> address_;
};

}  // namespace gdrbench::cuda
