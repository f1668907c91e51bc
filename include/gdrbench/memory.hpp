#pragma once

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
  struct Backing;
  BufferOptions options_;
  MemoryView view_;
  std::string no_dmabuf_reason_;
  std::unique_ptr<Backing> backing_;
};

/// The test pattern: 8-byte words that depend on the word's position in the range, not in the buffer, and on
/// a seed (message number and repetition mixed by the caller), so that data from another message, place or
/// run never passes. GPU memory is filled, checked and scrubbed through host memory, in pieces, outside any
/// timed region. All three throw Error when the range is not inside the buffer, CudaError when a copy fails.
void fill_pattern(const Buffer& buffer, std::uint64_t offset, std::uint64_t length, std::uint64_t seed);

struct Mismatch {
  std::uint64_t offset = 0;  ///< bytes from the start of the range checked
  std::uint8_t expected = 0;
  std::uint8_t found = 0;
};
/// The first wrong byte of the range, if any. What a NIC wrote to GPU memory is made visible first where the
/// GPU asks for a flush; the bytes are then copied to the host and compared there.
std::optional<Mismatch> find_mismatch(const Buffer& buffer, std::uint64_t offset, std::uint64_t length,
                                      std::uint64_t seed);
/// Overwrites the range with what no pattern word of `seed` equals, so that missing data is seen.
void scrub(const Buffer& buffer, std::uint64_t offset, std::uint64_t length, std::uint64_t seed);

/// Moves bytes between payload and bounce memory, in submission order: by the CPU between host buffers, by a
/// CUDA stream of its own when one side is GPU memory.
class Copier {
 public:
  enum class Towards { host, gpu };
  /// `kind` and `gpu` of the payload side. `pageable`: the host side is not pinned (the copy then blocks).
  Copier(MemoryKind kind, int gpu, bool pageable);
  ~Copier();
  Copier(Copier&&) noexcept;
  Copier& operator=(Copier&&) noexcept;

  void submit(std::byte* destination, const std::byte* source, std::uint64_t length, Towards towards);
  /// How many of the submitted copies are finished; the CPU's are finished when submit returns. Throws
  /// CudaError.
  std::uint64_t finished();
  std::uint64_t submitted() const { return submitted_; }

 private:
  struct Stream;
  std::uint64_t submitted_ = 0;
  std::unique_ptr<Stream> stream_;
};

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
