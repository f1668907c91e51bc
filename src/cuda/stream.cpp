#include "cuda/stream.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "cuda/device.hpp"
#include "cuda/driver_api.hpp"

namespace gdrbench::cuda {
namespace {

cudaStream_t native(void* stream) {
  return static_cast<cudaStream_t>(stream);
}

constexpr cudaMemcpyKind native(CopyKind kind) {
  if (kind == CopyKind::gpu_to_gpu) return cudaMemcpyDeviceToDevice;
  return kind == CopyKind::host_to_gpu ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
}

constexpr const char* describe(CopyKind kind) {
  if (kind == CopyKind::gpu_to_gpu) return "between GPU memories";
  return kind == CopyKind::host_to_gpu ? "from host to GPU memory" : "from GPU to host memory";
}

constexpr const char* earlier_failure = "an earlier kernel or copy on this GPU may have failed";

}  // namespace

void DestroyStream::operator()(void* stream) const noexcept {
  log_runtime_failure(cudaStreamDestroy(native(stream)), "destroying a CUDA stream");
}

void DestroyEvent::operator()(void* event) const noexcept {
  log_runtime_failure(cudaEventDestroy(static_cast<cudaEvent_t>(event)), "destroying a CUDA event");
}

Event::Event(int gpu) {
  use_device(gpu);
  cudaEvent_t event = nullptr;
  check_runtime(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                fmt::format("creating an event on GPU {}", gpu));
  handle_.reset(event);
}

bool Event::done() const {
  const cudaError_t code = cudaEventQuery(static_cast<cudaEvent_t>(handle_.get()));
  if (code == cudaSuccess) return true;
  if (code != cudaErrorNotReady) check_runtime(code, "waiting for a CUDA copy", earlier_failure);
  return false;
}

Stream::Stream(int gpu) {
  use_device(gpu);
  cudaStream_t stream = nullptr;
  check_runtime(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                fmt::format("creating a stream on GPU {}", gpu));
  handle_.reset(stream);
}

// The texts are made only on failure: copies are started in measured loops.
void Stream::copy(std::byte* destination, const std::byte* source, std::uint64_t length, CopyKind kind) {
  const cudaError_t code = cudaMemcpyAsync(destination, source, length, native(kind), native(handle_.get()));
  if (code != cudaSuccess)
    check_runtime(code, fmt::format("cudaMemcpyAsync of {} bytes {}", length, describe(kind)),
                  earlier_failure);
}

void Stream::record(Event& event) {
  const cudaError_t code =
      cudaEventRecord(static_cast<cudaEvent_t>(event.handle_.get()), native(handle_.get()));
  if (code != cudaSuccess) check_runtime(code, "cudaEventRecord", earlier_failure);
}

void Stream::wait() {
  const cudaError_t code = cudaStreamSynchronize(native(handle_.get()));
  if (code != cudaSuccess) check_runtime(code, "waiting for a CUDA stream", earlier_failure);
}

}  // namespace gdrbench::cuda
