#include "cuda/pointer.hpp"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/error_text.hpp"
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

Dmabuf::Dmabuf(int gpu, const std::byte* address, std::uint64_t length) {
  use_device(gpu);
  require_rdma_capable(address);
  if (!device_has(gpu, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED))
    throw Unavailable(
        fmt::format("GPU {} exports no dma-buf (CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED is 0); that needs the "
                    "open kernel module, see "
                    "/proc/driver/nvidia/version",
                    gpu));
  // The driver takes whole pages of the host: 4 KiB on most, 64 KiB on Grace and some other Arm systems.
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<CUdeviceptr>(address);
  const CUdeviceptr start = first / page * page;
  const std::uint64_t span = (first + length - start + page - 1) / page * page;
  check_driver(
      driver_function<decltype(cuMemGetHandleForAddressRange)>("cuMemGetHandleForAddressRange")(
          &fd_, start, span, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
      fmt::format("exporting {} bytes of GPU {}'s memory as a dma-buf (cuMemGetHandleForAddressRange)", span,
                  gpu),
      "memory that is neither cudaMalloc's nor RDMA-capable cuMemCreate's, or a driver that does not export "
      "it");
  offset_ = first - start;
  fcntl(fd_, F_SETFD, FD_CLOEXEC);  // a child that kept it would keep the GPU memory
}

Dmabuf::~Dmabuf() {
  if (fd_ >= 0 && close(fd_) != 0) std::fprintf(stderr, "closing a dma-buf: %s\n", errno_name(errno).c_str());
}

}  // namespace gdrbench::cuda
