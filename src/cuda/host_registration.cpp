#include "cuda/host_registration.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "cuda/device.hpp"
#include "cuda/driver_api.hpp"

namespace gdrbench::cuda {

void UnregisterHostMemory::operator()(void* address) const noexcept {
  log_runtime_failure(cudaHostUnregister(address), "cudaHostUnregister");
}

HostRegistration::HostRegistration(int gpu, std::byte* address, std::uint64_t length) {
  use_device(gpu);
  check_runtime(cudaHostRegister(address, length, cudaHostRegisterPortable),
                fmt::format("cudaHostRegister of {} bytes of host memory", length),
                "the limit on locked memory (ulimit -l) or the host's free memory may be too small");
  address_.reset(address);
}

}  // namespace gdrbench::cuda
