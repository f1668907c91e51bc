#include "cuda/backend.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdlib>

#include "cuda/error_hint.hpp"

namespace gdrbench::cuda {
namespace {

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string find_reason() {
  // Both are read once, when the driver starts. Beside a kernel that waits for the host, a stream that shares
  // its hardware queue would wait for ever (32 queues are the most), and so would loading another kernel.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
    return "no CUDA driver (libcuda.so.1 is not installed, or not mapped into this container)";
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaSuccess && count > 0) return "";
  cudaGetLastError();  // later calls must not find this one
  if (code == cudaErrorInsufficientDriver)
    return fmt::format("the CUDA driver is too old: it supports CUDA {}, this build needs {}",
                       version_text(driver), version_text(CUDART_VERSION));
  if (code == cudaSuccess || code == cudaErrorNoDevice) {
    const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
    return fmt::format("the CUDA driver finds no GPU ({})",
                       visible != nullptr ? fmt::format("CUDA_VISIBLE_DEVICES is '{}'", visible)
                                          : "is one mapped into this container? look at nvidia-smi");
  }
  const std::string hint = error_hint(code);
  return fmt::format("cudaGetDeviceCount: {} ({}){}{}", cudaGetErrorName(code), cudaGetErrorString(code),
                     hint.empty() ? "" : "; ", hint);
}

}  // namespace

std::string_view backend() {
  return "cuda";
}

const std::string& unavailable_reason() {
  static const std::string reason = find_reason();
  return reason;
}

}  // namespace gdrbench::cuda
