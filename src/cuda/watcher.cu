#include <cuda_runtime.h>

#include "cuda/watcher.hpp"

namespace gdrbench::cuda {
namespace {

constexpr unsigned warp_threads = 32;

// The first warp polls the byte, at the pace of the GPU's own memory; the second one looks at the host's
// flag, since each look crosses the bus and would delay what the first one is to see.
__global__ void watch(volatile unsigned char* tail, unsigned char expected, unsigned long long messages,
                      const volatile unsigned* stop, volatile unsigned long long* seen) {
  __shared__ unsigned over;  // by atomics alone, since the warps do not wait for each other
  if (threadIdx.x == 0) over = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    const auto turned = static_cast<unsigned char>(~expected);
    unsigned long long count = 0;
    while (count < messages && atomicAdd(&over, 0U) == 0) {
      if (*tail != expected) continue;
      *tail = turned;
      // What is read after this is no older than the byte; and the host, once it knows, may have the next
      // message sent, which must not be turned over by this one.
      __threadfence_system();
      *seen = ++count;
    }
    atomicExch(&over, 1U);
  } else if (threadIdx.x == warp_threads) {
    while (atomicAdd(&over, 0U) == 0) {
      if (*stop != 0) atomicExch(&over, 1U);
      __nanosleep(5000);
    }
  }
}

}  // namespace

GpuWatcher::GpuWatcher(int gpu) : kernel_(gpu, reinterpret_cast<const void*>(&watch), 1) {}

void GpuWatcher::start(std::byte* tail, std::byte expected, std::uint64_t messages) {
  auto* byte = reinterpret_cast<unsigned char*>(tail);
  auto value = static_cast<unsigned char>(expected);
  unsigned long long count = messages;
  const unsigned* stop = kernel_.stop_flag();
  unsigned long long* seen = kernel_.counters();
  void* arguments[] = {&byte, &value, &count, &stop, &seen};
  kernel_.launch(1, 2 * warp_threads, arguments);
}

}  // namespace gdrbench::cuda
