#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace gdrbench::cuda {

/// What an address is to CUDA.
enum class PointerKind { plain_host, registered_host, managed, device };

constexpr std::string_view describe(PointerKind kind) {
  switch (kind) {
    case PointerKind::registered_host:
      return "host memory registered with CUDA (cudaMallocHost, cudaHostRegister)";
    case PointerKind::managed:
      return "managed memory (cudaMallocManaged)";
    case PointerKind::device:
      return "GPU memory";
    case PointerKind::plain_host:
      break;
  }
  return "host memory";
}

/// Throws CudaError. Without CUDA every address is plain host memory.
PointerKind classify(const void* address);

/// Throws Unavailable that names the kind of memory unless the address is GPU memory that a NIC can reach.
/// Managed memory is refused although its registration may succeed: its pages migrate, so a NIC that reaches
/// it works on host memory, and the result would be no GPUDirect RDMA.
void require_rdma_capable(const void* address);

/// What to ask before any registration with a NIC as GPU memory: throws Unavailable like
/// require_rdma_capable, but not for the memory of a GPU that supports no GPUDirect RDMA. Whether that can be
/// registered is for the registration to find out (a NIC in software can).
void require_registrable(const void* address);

/// Makes synchronous copies from and to the allocation finish before they return, always, so that a NIC sees
/// what they wrote (CU_POINTER_ATTRIBUTE_SYNC_MEMOPS). False when the driver refuses that for this kind of
/// memory. Throws CudaError on any other failure.
bool set_sync_memops(const void* address);

/// GPU memory exported as a dma-buf, the way of giving it to a NIC without a peer-memory module. Owns the
/// descriptor; the memory must outlive it.
class Dmabuf {
 public:
  /// Exports the host pages that hold the range. Throws Unavailable with the reason when the device exports
  /// none or the memory is of the wrong kind, CudaError when the export fails.
  Dmabuf(int gpu, const std::byte* address, std::uint64_t length);
  ~Dmabuf();
  Dmabuf(Dmabuf&& other) noexcept : fd_(std::exchange(other.fd_, -1)), offset_(other.offset_) {}
  Dmabuf& operator=(Dmabuf&&) = delete;

  int fd() const { return fd_; }
  /// Of the range's first byte in the dma-buf, bytes.
  std::uint64_t offset() const { return offset_; }

 private:
  int fd_ = -1;
  std::uint64_t offset_ = 0;
};

}  // namespace gdrbench::cuda
