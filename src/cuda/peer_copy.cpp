#include "cuda/peer_copy.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <chrono>

#include "cuda/device.hpp"
#include "cuda/driver_api.hpp"
#include "cuda/peer_link.hpp"

namespace gdrbench::cuda {
namespace {

// Both ways: the copy engine that the driver picks may be either GPU's.
void enable_access(int gpu, int other) {
  if (gpu == other || !peer_link(gpu, other).can_access) return;
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

PeerCopy::PeerCopy(int gpu, int other) : gpu_(gpu), other_(other), stream_(gpu) {
  enable_access(other, gpu);
  enable_access(gpu, other);
  use_device(gpu);
  before_ = timing_event();
  after_ = timing_event();
}

PeerCopy::Times PeerCopy::run(std::byte* destination, const std::byte* source, std::uint64_t length,
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

}  // namespace gdrbench::cuda
