#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "cuda/memory.hpp"
#include "cuda/stream.hpp"

namespace gdrbench::cuda {

/// Equally spaced ranges of GPU memory: range i begins i × stride bytes after `start`, is `length` bytes long
/// and has the pattern of seed + i. At multiples of 16 bytes they are worked on at memory speed.
struct PatternRanges {
  std::byte* start = nullptr;
  std::uint64_t length = 0;  ///< bytes
  std::uint64_t stride = 0;  ///< bytes
  std::uint64_t count = 1;
  std::uint64_t seed = 0;
};

/// A word of the pattern that is not as it should be.
struct WrongWord {
  std::uint64_t range = 0;
  std::uint64_t offset = 0;  ///< of its first byte in the range
  std::uint64_t found = 0;   ///< read after the check; as many low bytes as the range has there
};

/// Writes and checks the test pattern by kernels in a stream of its own, and waits for that stream alone: a
/// kernel that runs on is no obstacle. All that would wait for such a one (allocations, loading of kernels)
/// is done by the constructor. May be used by several threads, one at a time.
class PatternKernels {
 public:
  /// Throws Unavailable or CudaError, which says what to do when this build has no code for the GPU.
  explicit PatternKernels(int gpu);

  /// Every word xor `flip`. Done when it returns. Throws CudaError, as all below.
  void write(const PatternRanges& ranges, std::uint64_t flip);
  /// The first wrong word, by range and then by place.
  std::optional<WrongWord> first_wrong(const PatternRanges& ranges);

  /// The kernels of write() and first_wrong() alone, not waited for, in stream(): to measure them.
  void start_writing(const PatternRanges& ranges, std::uint64_t flip);
  void start_checking(const PatternRanges& ranges);
  const Stream& stream() const { return stream_; }

 private:
  int gpu_;
  Stream stream_;
  unsigned max_blocks_ = 1;  ///< of one launch
  PinnedMemory host_word_;
  std::unique_ptr<void, FreeDeviceMemory> device_word_;
  std::mutex mutex_;
};

}  // namespace gdrbench::cuda
