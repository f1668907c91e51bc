#include "cuda/ipc.hpp"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "cuda/device.hpp"
#include "cuda/driver_api.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::cuda {
namespace {

static_assert(sizeof(IpcHandle) == sizeof(cudaIpcMemHandle_t));

[[noreturn]] void refuse(cudaError_t code, const std::string& tried, const char* hint) {
  cudaGetLastError();  // reported here; later calls must not find it again
  throw Unavailable(
      fmt::format("{}: {} ({}); {}", tried, cudaGetErrorName(code), cudaGetErrorString(code), hint));
}

}  // namespace

IpcExport export_memory(int gpu, const std::byte* address) {
  use_device(gpu);
  // A handle stands for a whole allocation, of which the payload may be the middle.
  CUdeviceptr base = 0;
  std::size_t length = 0;
  const auto first = reinterpret_cast<CUdeviceptr>(address);
  check_driver(driver_function<decltype(cuMemGetAddressRange)>("cuMemGetAddressRange")(&base, &length, first),
               fmt::format("looking for the allocation around an address of GPU {}", gpu));
  cudaIpcMemHandle_t handle{};
  if (const cudaError_t code = cudaIpcGetMemHandle(&handle, std::bit_cast<void*>(base)); code != cudaSuccess)
    refuse(code, fmt::format("cudaIpcGetMemHandle of {} bytes of GPU {}", length, gpu),
           "only cudaMalloc memory can be opened by other processes, and not on every platform");
  IpcExport exported{.handle = {}, .offset = first - base, .allocation_bytes = length};
  std::memcpy(exported.handle.data(), &handle, sizeof handle);
  return exported;
}

void CloseIpcMemory::operator()(void* base) const noexcept {
  // The mapping belongs to this GPU's context.
  log_runtime_failure(cudaSetDevice(gpu), "cudaSetDevice");
  log_runtime_failure(cudaIpcCloseMemHandle(base), "cudaIpcCloseMemHandle");
}

ImportedMemory::ImportedMemory(int gpu, const IpcExport& exported) : offset_(exported.offset) {
  use_device(gpu);
  cudaIpcMemHandle_t handle{};
  std::memcpy(&handle, exported.handle.data(), sizeof handle);
  void* base = nullptr;
  if (const cudaError_t code = cudaIpcOpenMemHandle(&base, handle, cudaIpcMemLazyEnablePeerAccess);
      code != cudaSuccess)
    refuse(code, fmt::format("cudaIpcOpenMemHandle of {} bytes on GPU {}", exported.allocation_bytes, gpu),
           "CUDA IPC joins two processes of one host, whose containers share their IPC and PID namespaces");
  base_ = {base, CloseIpcMemory{gpu}};
}

}  // namespace gdrbench::cuda
