#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gdrbench {

/// A range of memory as the NIC side sees it; the only thing that cuda and verbs both know. Owns nothing.
struct MemoryView {
  std::byte* address = nullptr;  ///< host or device virtual address of the first byte
  std::uint64_t length = 0;      ///< bytes
  bool on_gpu = false;
  int dmabuf_fd = -1;               ///< exported dma-buf that covers the range, or −1
  std::uint64_t dmabuf_offset = 0;  ///< offset of `address` in the dma-buf, bytes
  // What explains a registration that fails; absent where it is not known.
  std::string_view no_dmabuf_reason{};    ///< why the GPU gave no dma-buf
  std::optional<bool> gpu_direct_rdma{};  ///< whether the GPU supports GPUDirect RDMA
  std::optional<bool> gpu_dmabuf{};       ///< whether the GPU exports dma-bufs
};

}  // namespace gdrbench
