#include <cuda_runtime.h>

#include <algorithm>

#include "cuda/device.hpp"
#include "cuda/driver_api.hpp"
#include "cuda/resident.hpp"

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

namespace {

// Half of what a multiprocessor holds, so that others find room there.
constexpr unsigned block_threads = 1024;
constexpr std::uint64_t buffer_bytes = std::uint64_t{512} << 20;
constexpr std::uint64_t unit_bytes = 1 << 20;
constexpr unsigned unit_vectors = unit_bytes / sizeof(uint4);
constexpr int unit_fmas = 4096;  // of a thread

// Units between two words with the host: about 0.3 ms on an H100. More often, they would take bandwidth from
// the bus whose transfers are measured.
constexpr unsigned compute_batch = 16;
constexpr unsigned memory_batch = 4;

// Counts units until the host says stop. Blocks tell their counts at different times, so that the sum does
// not rise in steps. The flag is asked for before the work and needed after it: the bus is never waited for.
template <unsigned batch, class Unit>
__device__ void work(const volatile unsigned* stop, volatile unsigned long long* counters, Unit unit) {
  __shared__ unsigned over;
  unsigned long long done = 0;
  unsigned due = 1 + blockIdx.x % batch;
  for (;;) {
    unsigned asked = 0;
    if (threadIdx.x == 0) asked = *stop;
    for (unsigned i = 0; i < due; ++i) unit(done + i);
    done += due;
    due = batch;
    __syncthreads();
    if (threadIdx.x == 0) {
      counters[blockIdx.x] = done;
      over = asked;
    }
    __syncthreads();
    if (over != 0) return;
  }
}

__global__ void __launch_bounds__(block_threads)
    compute_load(const volatile unsigned* stop, volatile unsigned long long* counters, float factor,
                 float summand) {
  float a = threadIdx.x, b = a + 1, c = a + 2, d = a + 3;
  work<compute_batch>(stop, counters, [&](unsigned long long) {
#pragma unroll 8
    for (int i = 0; i < unit_fmas / 4; ++i) {
      a = fmaf(a, factor, summand);
      b = fmaf(b, factor, summand);
      c = fmaf(c, factor, summand);
      d = fmaf(d, factor, summand);
    }
  });
  // Never so: it keeps the compiler from leaving the work out.
  if (a + b + c + d == -1) counters[blockIdx.x] = 0;
}

__global__ void __launch_bounds__(block_threads)
    memory_load(const volatile unsigned* stop, volatile unsigned long long* counters, const uint4* buffer,
                unsigned buffer_units) {
  unsigned folded = 0;
  work<memory_batch>(stop, counters, [&](unsigned long long index) {
    const std::uint64_t place = (blockIdx.x + index * gridDim.x) % buffer_units;
    const uint4* const first = buffer + place * unit_vectors;
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < unit_vectors; i += block_threads) {
      const uint4 vector = __ldcs(first + i);
      folded |= vector.x | vector.y | vector.z | vector.w;
    }
  });
  // Never so, since the buffer holds zeros.
  if (folded != 0) counters[blockIdx.x] = 0;
}

const void* kernel_of(LoadKind kind) {
  return kind == LoadKind::compute ? reinterpret_cast<const void*>(&compute_load)
                                   : reinterpret_cast<const void*>(&memory_load);
}

unsigned attribute(int gpu, cudaDeviceAttr which, const char* tried) {
  int value = 0;
  check_runtime(cudaDeviceGetAttribute(&value, which, gpu), tried);
  return static_cast<unsigned>(value);
}

// A block a multiprocessor, but for one: kernels that ask for another division of its memory into L1 and
// shared memory wait until a multiprocessor is empty, among them the driver's own for small copies.
unsigned blocks_for(int gpu) {
  use_device(gpu);
  const unsigned processors =
      attribute(gpu, cudaDevAttrMultiProcessorCount, "reading cudaDevAttrMultiProcessorCount");
  return std::max(processors, 2U) - 1;
}

}  // namespace

GpuLoad::GpuLoad(int gpu, LoadKind kind) : blocks_(blocks_for(gpu)), kernel_(gpu, kernel_of(kind), blocks_) {
  if (kind != LoadKind::memory) return;
  buffer_.emplace(gpu, buffer_bytes);
  Stream stream(gpu);
  check_runtime(cudaMemsetAsync(buffer_->address(), 0, buffer_bytes, static_cast<cudaStream_t>(stream.get())),
                "clearing GPU memory");
  stream.wait();
}

void GpuLoad::start() {
  const unsigned* stop = kernel_.stop_flag();
  unsigned long long* counters = kernel_.counters();
  if (buffer_) {
    const std::byte* buffer = buffer_->address();
    unsigned units = buffer_bytes / unit_bytes;
    void* arguments[] = {&stop, &counters, &buffer, &units};
    kernel_.launch(blocks_, block_threads, arguments);
  } else {
    float factor = 0.999F, summand = 0.001F;
    void* arguments[] = {&stop, &counters, &factor, &summand};
    kernel_.launch(blocks_, block_threads, arguments);
  }
}

std::uint64_t GpuLoad::units() const {
  std::uint64_t sum = 0;
  for (std::size_t block = 0; block < kernel_.words(); ++block) sum += kernel_.word(block);
  return sum;
}

}  // namespace gdrbench::cuda
