#include "cuda/pointer.hpp"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "base/confirm.hpp"
#include "cuda/backend.hpp"
#include "cuda/device.hpp"
#include "cuda/driver_api.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::cuda {

namespace {

cudaPointerAttributes attributes_of(const void* address) {
  cudaPointerAttributes attributes{};
  check_runtime(cudaPointerGetAttributes(&attributes, address),
                fmt::format("cudaPointerGetAttributes of {}", address));
  return attributes;
}

void require_gpu_memory(const void* address) {
  const PointerKind kind = classify(address);
  if (kind == PointerKind::managed)
    throw Unavailable(fmt::format(
        "{} is refused for gdr: its pages migrate, so a NIC would work on host memory without a word; use "
        "cudaMalloc or RDMA-capable cuMemCreate memory",
        describe(kind)));
  if (kind != PointerKind::device)
    throw Unavailable(
        fmt::format("{} is no GPU memory, so using it would be no GPUDirect RDMA", describe(kind)));
}

// For memory of cuMemCreate the capability is a request, which shows in the attribute of what was made.
bool is_rdma_capable(const void* address) {
  int capable = 0;
  check_driver(
      driver_function<decltype(cuPointerGetAttribute)>("cuPointerGetAttribute")(
          &capable, CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, reinterpret_cast<CUdeviceptr>(address)),
      "reading CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE of GPU memory");
  return capable != 0;
}

[[noreturn]] void refuse_incapable() {
  throw Unavailable(
      "this GPU memory is not GPUDirect RDMA capable (CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE is 0): "
      "the GPU does not support it, or not for memory of this kind; try memory cuda" +
      confirm_with("gpu"));
}

}  // namespace

PointerKind classify(const void* address) {
  if (!unavailable_reason().empty()) return PointerKind::plain_host;
  switch (attributes_of(address).type) {
    case cudaMemoryTypeHost:
      return PointerKind::registered_host;
    case cudaMemoryTypeDevice:
      return PointerKind::device;
    case cudaMemoryTypeManaged:
      return PointerKind::managed;
    default:
      return PointerKind::plain_host;
  }
}

void require_rdma_capable(const void* address) {
  require_gpu_memory(address);
  if (!is_rdma_capable(address)) refuse_incapable();
}

void require_registrable(const void* address) {
  require_gpu_memory(address);
  if (!is_rdma_capable(address) && rdma_support(attributes_of(address).device).gpu_direct_rdma)
    refuse_incapable();
}

bool set_sync_memops(const void* address) {
  const unsigned on = 1;
  const CUresult code = driver_function<decltype(cuPointerSetAttribute)>("cuPointerSetAttribute")(
      &on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, reinterpret_cast<CUdeviceptr>(address));
  if (code == CUDA_ERROR_NOT_SUPPORTED || code == CUDA_ERROR_INVALID_VALUE) return false;
  check_driver(code, "setting CU_POINTER_ATTRIBUTE_SYNC_MEMOPS on GPU memory");
  return true;
}

}  // namespace gdrbench::cuda
