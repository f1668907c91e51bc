#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "cuda/memory.hpp"
#include "cuda/stream.hpp"

namespace gdrbench::cuda {

/// A kernel of one block that stays on the GPU and copies small pieces between GPU memory and mapped host
/// memory as it is told there, so that a copy costs no launch. It works through numbered pieces in order.
///
/// Orders, and the data that goes to the host, are flagged words (cuda/flagged_words.hpp) in the slot of
/// the piece, with the low half of its number for a flag: no fence and no second round trip over PCIe is
/// needed behind them. Towards the GPU, data is read where it lies; asking for it ahead, with the order, was
/// tried and is slower, since the GPU has few reads of host memory under way at once.
class ResidentCopy {
 public:
  static constexpr std::uint64_t max_bytes = 16 << 10;  ///< of one piece
  static constexpr std::uint64_t slots = 16;            ///< pieces in flight; piece n uses slot n mod slots

  struct Order {
    std::uint64_t gpu_address;
    std::uint64_t host_address;  ///< towards the GPU; of memory that it can read
    std::uint32_t length;        ///< bytes; 0 ends the kernel
    std::uint32_t unused;
  };

  /// Allocates; nothing runs yet. Throws Unavailable or CudaError.
  ResidentCopy(int gpu, CopyKind kind);

  /// Starts the kernel, which then waits for piece number `next`. It has to be ended before this goes. Throws
  /// CudaError.
  void start(std::uint64_t next);
  /// Waits for the kernel's end, which has been ordered. Throws CudaError when it failed.
  void join();
  /// Throws CudaError when the kernel has failed; cheap enough to be asked now and then while waiting.
  void check() const;

  /// Where the flagged words of a piece are written, and those of its data come.
  std::byte* order(std::uint64_t piece) const;
  std::byte* data(std::uint64_t piece) const;
  /// Towards the GPU: the number of the last piece whose data is in place there.
  std::uint64_t arrived() const;

 private:
  int gpu_;
  CopyKind kind_;
  PinnedMemory memory_;
  Stream stream_;
};

}  // namespace gdrbench::cuda
