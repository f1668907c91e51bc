#include "cuda/resident.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <atomic>
#include <cstring>

#include "cuda/device.hpp"
#include "cuda/driver_api.hpp"

namespace gdrbench::cuda {
namespace {

// The flag is in front, on a line of its own: the GPU reads it, and the host reads the others.
constexpr std::size_t first_word = 64;

cudaStream_t native_stream(void* stream) {
  return static_cast<cudaStream_t>(stream);
}

void set_flag(void* shared, unsigned value) {
  std::atomic_ref<unsigned>(*static_cast<unsigned*>(shared)).store(value, std::memory_order_release);
}

}  // namespace

ResidentKernel::ResidentKernel(int gpu, const void* kernel, std::size_t words)
    : gpu_(gpu), kernel_(kernel), words_(words), shared_(gpu, first_word + words * sizeof(std::uint64_t)) {
  use_device(gpu);
  share_multiprocessors(kernel);
  int lowest = 0, highest = 0;
  check_runtime(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "cudaDeviceGetStreamPriorityRange");
  cudaStream_t stream = nullptr;
  check_runtime(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, lowest),
                fmt::format("creating a stream on GPU {}", gpu));
  stream_.reset(stream);
}

ResidentKernel::~ResidentKernel() {
  if (!running_) return;
  set_flag(shared_.address(), 1);
  log_runtime_failure(cudaStreamSynchronize(native_stream(stream_.get())), "ending a kernel");
}

void ResidentKernel::launch(unsigned blocks, unsigned threads, void** arguments) {
  stop();
  use_device(gpu_);
  std::memset(address_of_word(0), 0, words_ * sizeof(std::uint64_t));
  set_flag(shared_.address(), 0);
  check_runtime(
      cudaLaunchKernel(kernel_, dim3(blocks), dim3(threads), arguments, 0, native_stream(stream_.get())),
      fmt::format("starting a kernel of {} blocks of {} threads on GPU {}", blocks, threads, gpu_));
  running_ = true;
}

void ResidentKernel::stop() {
  if (!running_) return;
  running_ = false;
  set_flag(shared_.address(), 1);
  check_runtime(cudaStreamSynchronize(native_stream(stream_.get())), "ending a kernel");
}

void ResidentKernel::check() const {
  const cudaError_t code = cudaStreamQuery(native_stream(stream_.get()));
  if (code != cudaErrorNotReady) check_runtime(code, "looking at a running kernel");
}

std::uint64_t ResidentKernel::word(std::size_t index) const {
  auto& cell = *reinterpret_cast<std::uint64_t*>(address_of_word(index));
  return std::atomic_ref<std::uint64_t>(cell).load(std::memory_order_acquire);
}

const unsigned* ResidentKernel::stop_flag() const {
  return reinterpret_cast<const unsigned*>(shared_.address());
}

unsigned long long* ResidentKernel::counters() const {
  return reinterpret_cast<unsigned long long*>(address_of_word(0));
}

std::byte* ResidentKernel::address_of_word(std::size_t index) const {
  return shared_.address() + first_word + index * sizeof(std::uint64_t);
}

}  // namespace gdrbench::cuda
