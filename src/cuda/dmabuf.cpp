#include "cuda/dmabuf.hpp"

#include <cuda.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "cuda/device.hpp"
#include "cuda/driver_api.hpp"
#include "cuda/pointer.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::cuda {

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
