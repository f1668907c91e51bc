#include "cuda/pinned_memory.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstring>

#include "cuda/device.hpp"
#include "cuda/driver_api.hpp"

namespace gdrbench::cuda {

void FreePinnedMemory::operator()(void* address) const noexcept {
  log_runtime_failure(cudaFreeHost(address), "freeing pinned host memory");
}

PinnedMemory::PinnedMemory(int gpu, std::uint64_t length) {
  use_device(gpu);
  void* address = nullptr;
  check_runtime(cudaHostAlloc(&address, length, cudaHostAllocPortable | cudaHostAllocMapped),
                fmt::format("cudaHostAlloc of {} bytes", length),
                "the limit on locked memory (ulimit -l) or the host's free memory may be too small");
  address_.reset(address);
  std::memset(address, 0, length);
}

}  // namespace gdrbench::cuda
