#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace gdrbench::cuda {

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
