#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace gdrbench::cuda {

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
