#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "gdrbench/case.hpp"
#include "gdrbench/memory_view.hpp"

namespace gdrbench {

struct BufferOptions {
  MemoryKind kind = MemoryKind::host;
  std::uint64_t length = 0;  ///< bytes; the allocation is rounded up to whole pages
  int gpu = 0;
  bool huge_pages = false;   ///< host: ask for 2 MiB pages; falls back to small ones when none are free
  bool pin_for_gpu = false;  ///< host: pinned for the GPU's copy engine where CUDA is there
};

/// Payload or bounce memory of any kind. Host memory is page-aligned. Throws Unavailable when the kind does
/// not exist here, SystemError or CudaError when the allocation fails.
class Buffer {
 public:
  explicit Buffer(const BufferOptions& options);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() const { return view_.address; }
  std::uint64_t size() const { return view_.length; }
  MemoryKind kind() const { return options_.kind; }
  int gpu() const { return options_.gpu; }
  /// The view has a dma-buf descriptor where the GPU could export one; it lives as long as the buffer.
  const MemoryView& view() const { return view_; }
  /// Why the GPU side gives no dma-buf; empty when it does or for host memory.
  const std::string& no_dmabuf_reason() const { return no_dmabuf_reason_; }

 private:
  friend struct BufferKernels;
  struct Backing;
  BufferOptions options_;
  MemoryView view_;
  std::string no_dmabuf_reason_;
  std::unique_ptr<Backing> backing_;
};

/// Equally spaced ranges of a buffer: slot i begins at offset + i × stride and has the pattern of seed + i.
struct PatternSlots {
  std::uint64_t offset = 0;  ///< bytes from the start of the buffer
  std::uint64_t length = 0;  ///< bytes of each slot
  std::uint64_t stride = 0;  ///< bytes from slot to slot
  std::uint64_t count = 1;
  std::uint64_t seed = 0;
};

/// The test pattern: 8-byte words that depend on the word's position in the slot, not in the buffer, and on a
/// seed (message number and repetition mixed by the caller), so that data from another message, place or run
/// never passes. GPU memory is worked on by the GPU, at the speed of its memory where slots begin at
/// multiples of 16 bytes. All three throw Error when a slot is not inside the buffer, CudaError when the GPU
/// fails, and return when they are done; they wait for no other work on the GPU.
void fill_pattern(const Buffer& buffer, const PatternSlots& slots);

/// The byte at `position` of a range that holds the pattern of `seed`.
std::byte pattern_byte(std::uint64_t position, std::uint64_t seed);

struct Mismatch {
  std::uint64_t slot = 0;
  std::uint64_t offset = 0;  ///< bytes from the start of the slot
  std::uint8_t expected = 0;
  std::uint8_t found = 0;  ///< as expected when the byte of GPU memory has changed since it was checked
};
/// The first wrong byte, by slot and then by place, if any. What a NIC wrote to GPU memory is made visible
/// first where the GPU asks for a flush.
std::optional<Mismatch> find_mismatch(const Buffer& buffer, const PatternSlots& slots);
/// Overwrites the slots with what no byte of their pattern equals, so that missing data is seen.
void scrub(const Buffer& buffer, const PatternSlots& slots);

/// What this machine has of CUDA, for the discovery of paths.
struct GpuSummary {
  std::string backend;      ///< "cuda" or "none"
  std::string unavailable;  ///< why there is no usable GPU, "" if there is
  int count = 0;
  std::string name;         ///< of the chosen GPU
  std::string uuid;         ///< "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
  std::string driver;       ///< "580.159.04"
  std::string pci_address;  ///< "0000:bb:00.0"
  bool gpu_direct_rdma = false;
  bool dmabuf = false;
};
GpuSummary gpu_summary(int gpu = 0);

}  // namespace gdrbench
