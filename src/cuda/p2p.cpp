#include "cuda/p2p.hpp"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <bit>
#include <chrono>
#include <cstring>

#include "cuda/device.hpp"
#include "cuda/driver_api.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::cuda {
namespace {

int p2p_attribute(int gpu, int other, cudaDeviceP2PAttr which) {
  int value = 0;
  check_runtime(cudaDeviceGetP2PAttribute(&value, which, gpu, other),
                fmt::format("cudaDeviceGetP2PAttribute of GPUs {} and {}", gpu, other));
  return value;
}

}  // namespace

P2pLink p2p_link(int gpu, int other) {
  if (gpu == other)
    return {.can_access = true, .native_atomics = true, .performance_rank = 0, .kind = "same gpu"};
  int can = 0;
  check_runtime(cudaDeviceCanAccessPeer(&can, gpu, other),
                fmt::format("cudaDeviceCanAccessPeer of GPUs {} and {}", gpu, other));
  P2pLink link{.can_access = can != 0};
  if (!link.can_access) return link;
  link.native_atomics = p2p_attribute(gpu, other, cudaDevP2PAttrNativeAtomicSupported) != 0;
  link.performance_rank = p2p_attribute(gpu, other, cudaDevP2PAttrPerformanceRank);
  link.kind = link.native_atomics ? "nvlink" : "pcie";
  return link;
}

int find_gpu(const std::string& uuid) {
  const int count = device_count();
  for (int gpu = 0; gpu < count; ++gpu)
    if (device_uuid(gpu) == uuid) return gpu;
  return -1;
}

namespace {

// Both ways: the copy engine that the driver picks may be either GPU's.
void enable_access(int gpu, int other) {
  if (gpu == other || !p2p_link(gpu, other).can_access) return;
  use_device(gpu);
  const cudaError_t code = cudaDeviceEnablePeerAccess(other, 0);
  if (code == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();
    return;
  }
  check_runtime(code, fmt::format("enabling access of GPU {} to GPU {}'s memory", gpu, other));
}

cudaEvent_t native(const std::unique_ptr<void, DestroyEvent>& event) {
  return static_cast<cudaEvent_t>(event.get());
}

std::unique_ptr<void, DestroyEvent> timing_event() {
  cudaEvent_t event = nullptr;
  check_runtime(cudaEventCreate(&event), "creating a timing event");
  return std::unique_ptr<void, DestroyEvent>(event);
}

}  // namespace

P2pCopy::P2pCopy(int gpu, int other) : gpu_(gpu), other_(other), stream_(gpu) {
  enable_access(other, gpu);
  enable_access(gpu, other);
  use_device(gpu);
  before_ = timing_event();
  after_ = timing_event();
}

P2pCopy::Times P2pCopy::run(std::byte* destination, const std::byte* source, std::uint64_t length,
                            std::uint64_t count) {
  use_device(gpu_);
  auto* const stream = static_cast<cudaStream_t>(stream_.get());
  check_runtime(cudaStreamSynchronize(stream), "waiting for earlier copies");
  const auto start = std::chrono::steady_clock::now();
  check_runtime(cudaEventRecord(native(before_), stream), "recording an event before copies");
  for (std::uint64_t i = 0; i < count; ++i)
    if (const cudaError_t code = cudaMemcpyPeerAsync(destination, other_, source, gpu_, length, stream);
        code != cudaSuccess)
      check_runtime(code, fmt::format("cudaMemcpyPeerAsync of {} bytes, GPU {} to {}", length, gpu_, other_));
  check_runtime(cudaEventRecord(native(after_), stream), "recording an event after copies");
  check_runtime(cudaStreamSynchronize(stream), "waiting for cudaMemcpyPeerAsync");
  const std::chrono::duration<double> host = std::chrono::steady_clock::now() - start;
  float device_ms = 0;
  check_runtime(cudaEventElapsedTime(&device_ms, native(before_), native(after_)), "reading event times");
  return {.host_s = host.count(), .device_s = static_cast<double>(device_ms) * 1e-3};
}

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
