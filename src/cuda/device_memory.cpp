#include "cuda/device_memory.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "cuda/device.hpp"
#include "cuda/driver_api.hpp"
#include "cuda/pointer.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::cuda {

std::uint64_t rdma_page_bytes() {
  static const auto host_page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return std::max<std::uint64_t>(host_page, 64 << 10);
}

void FreeDeviceMemory::operator()(void* allocation) const noexcept {
  log_runtime_failure(cudaFree(allocation), "freeing GPU memory");
}

DeviceMemory::DeviceMemory(int gpu, std::uint64_t length) {
  use_device(gpu);
  // cudaMalloc aligns to 512 bytes only, so up to one page in front is left unused.
  const std::uint64_t page = rdma_page_bytes();
  const std::uint64_t padded = whole_units(length, page) + page;
  void* allocation = nullptr;
  check_runtime(cudaMalloc(&allocation, padded),
                fmt::format("cudaMalloc of {} bytes on GPU {}", padded, gpu));
  allocation_.reset(allocation);
  const auto first = reinterpret_cast<std::uintptr_t>(allocation);
  address_ = static_cast<std::byte*>(allocation) + ((page - first % page) % page);
  if (!set_sync_memops(address_))
    throw Unavailable(
        fmt::format("the CUDA driver refuses SYNC_MEMOPS for cudaMalloc memory of GPU {}", gpu));
}

}  // namespace gdrbench::cuda
