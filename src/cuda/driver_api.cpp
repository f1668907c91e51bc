#include "cuda/driver_api.hpp"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdio>
#include <limits>

#include "cuda/device.hpp"
#include "cuda/error_hint.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::cuda {
namespace {

/// The driver version whose functions are asked for: the first with dma-buf export, and below what any CUDA
/// 12 runtime needs. None of the functions used here has changed since.
#if CUDART_VERSION >= 12050
constexpr unsigned driver_api_version = 11070;
#endif

std::string driver_error_name(int code) {
  const char* name = nullptr;
  const char* description = nullptr;
  const auto result = static_cast<CUresult>(code);
  driver_function<decltype(cuGetErrorName)>("cuGetErrorName")(result, &name);
  driver_function<decltype(cuGetErrorString)>("cuGetErrorString")(result, &description);
  return fmt::format("{} ({})", name != nullptr ? name : fmt::format("CUresult {}", code),
                     description != nullptr ? description : "unknown");
}

}  // namespace

void check_runtime(int code, const std::string& tried, const std::string& hint) {
  if (code == cudaSuccess) return;
  cudaGetLastError();  // the failure is reported here; later calls must not find it again
  const auto error = static_cast<cudaError_t>(code);
  throw CudaError(code, fmt::format("{} ({})", cudaGetErrorName(error), cudaGetErrorString(error)), tried,
                  hint.empty() ? error_hint(code) : hint);
}

void check_driver(int code, const std::string& tried, const std::string& hint) {
  if (code != CUDA_SUCCESS)
    throw CudaError(code, driver_error_name(code), tried, hint.empty() ? error_hint(code) : hint);
}

void log_runtime_failure(int code, const char* tried) noexcept {
  // At process exit the runtime may be gone before the last owner; everything is freed then.
  if (code == cudaSuccess || code == cudaErrorCudartUnloading) return;
  std::fprintf(stderr, "%s: %s\n", tried, cudaGetErrorName(static_cast<cudaError_t>(code)));
}

void log_driver_failure(int code, const char* tried) noexcept {
  if (code == CUDA_SUCCESS || code == CUDA_ERROR_DEINITIALIZED) return;
  std::fprintf(stderr, "%s: CUresult %d\n", tried, code);
}

void* driver_entry_point(const char* symbol) {
  if (!unavailable_reason().empty()) throw Unavailable(unavailable_reason());
  void* function = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  const cudaError_t code =
      cudaGetDriverEntryPointByVersion(symbol, &function, driver_api_version, cudaEnableDefault, &status);
#else
  const cudaError_t code = cudaGetDriverEntryPoint(symbol, &function, cudaEnableDefault, &status);
#endif
  check_runtime(code, fmt::format("looking {} up in the CUDA driver", symbol));
  // Some runtimes say success twice, with a null pointer, for what the driver lacks.
  if (status == cudaDriverEntryPointSuccess && function != nullptr) return function;
  throw Unavailable(fmt::format("the CUDA driver has no {} ({}); update the driver", symbol,
                                status == cudaDriverEntryPointVersionNotSufficent ? "too old" : "not found"));
}

std::uint64_t whole_units(std::uint64_t length, std::uint64_t unit) {
  // Room for one more unit, which a caller may add to align the start.
  if (length > std::numeric_limits<std::uint64_t>::max() - 2 * unit)
    throw Error(fmt::format("{} bytes of GPU memory were asked for, more than there are addresses", length));
  return (length + unit - 1) / unit * unit;
}

int device_handle(int gpu) {
  CUdevice device = 0;
  check_driver(driver_function<decltype(cuDeviceGet)>("cuDeviceGet")(&device, gpu),
               fmt::format("cuDeviceGet of GPU {}", gpu));
  return device;
}

bool device_has(int gpu, int attribute) {
  int value = 0;
  const CUresult code = driver_function<decltype(cuDeviceGetAttribute)>("cuDeviceGetAttribute")(
      &value, static_cast<CUdevice_attribute>(attribute), device_handle(gpu));
  if (code == CUDA_ERROR_INVALID_VALUE)
    return false;  // a driver that does not know the attribute lacks the thing
  check_driver(code, fmt::format("cuDeviceGetAttribute {} of GPU {}", attribute, gpu));
  return value != 0;
}

}  // namespace gdrbench::cuda
