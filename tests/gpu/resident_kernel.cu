#include <cuda_runtime_api.h>

#include "cuda/driver_api.hpp"
#include "resident_kernel.hpp"

namespace gdrbench {
namespace {

__global__ void run_until(const volatile int* stop) {
  constexpr unsigned long long limit_ns = 10'000'000'000;
  unsigned long long begin = 0, now = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (*stop == 0 && now - begin < limit_ns);
}

cudaStream_t native(void* stream) {
  return static_cast<cudaStream_t>(stream);
}

}  // namespace

ResidentKernel::ResidentKernel() {
  cudaStream_t stream = nullptr;
  cuda::check_runtime(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
  stream_ = stream;
  void* memory = nullptr;
  cuda::check_runtime(cudaHostAlloc(&memory, sizeof(int), cudaHostAllocMapped), "allocating pinned memory");
  stop_ = static_cast<int*>(memory);
  *stop_ = 0;
  void* seen_by_gpu = nullptr;
  cuda::check_runtime(cudaHostGetDevicePointer(&seen_by_gpu, memory, 0), "mapping pinned memory");
  void* arguments[] = {&seen_by_gpu};
  cuda::check_runtime(
      cudaLaunchKernel(reinterpret_cast<const void*>(run_until), dim3(1), dim3(1), arguments, 0, stream),
      "launching a kernel");
}

ResidentKernel::~ResidentKernel() {
  *static_cast<volatile int*>(stop_) = 1;
  cudaStreamSynchronize(native(stream_));
  cudaStreamDestroy(native(stream_));
  cudaFreeHost(stop_);
}

bool ResidentKernel::runs() const {
  const cudaError_t code = cudaStreamQuery(native(stream_));
  cudaGetLastError();  // "not ready" is no failure to be found later
  return code == cudaErrorNotReady;
}

}  // namespace gdrbench
