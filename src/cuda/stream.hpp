#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace gdrbench::cuda {

/// gpu_to_gpu: both may be of other GPUs, or of another process, where they are mapped for the stream's.
enum class CopyKind { host_to_gpu, gpu_to_host, gpu_to_gpu };

struct DestroyStream {
  void operator()(void* stream) const noexcept;
};
struct DestroyEvent {
  void operator()(void* event) const noexcept;
};

/// A mark in a stream, without timing so that asking for it is cheap.
class Event {
 public:
  Event() = default;  ///< none yet
  explicit Event(int gpu);
  /// Whether everything before the mark is finished. Throws CudaError when any of it failed.
  bool done() const;

 private:
  friend class Stream;
  std::unique_ptr<void, DestroyEvent> handle_;
};

/// Copies run in the order given, and do not wait for the legacy default stream.
class Stream {
 public:
  explicit Stream(int gpu);
  /// Returns at once when the host side is pinned; with pageable memory the driver may wait. Throws
  /// CudaError.
  void copy(std::byte* destination, const std::byte* source, std::uint64_t length, CopyKind kind);
  /// The event must be of the same GPU.
  void record(Event& event);
  /// Returns when all of it is finished.
  void wait();
  /// The cudaStream_t.
  void* get() const { return handle_.get(); }

 private:
  std::unique_ptr<void, DestroyStream> handle_;
};

}  // namespace gdrbench::cuda
