#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "gdrbench/memory.hpp"
#include "gdrbench/path_proof.hpp"

namespace gdrbench::measure {

/// Sees messages arrive in the payload's memory, by their last byte, and turns that byte over for the next
/// one: a kernel in GPU memory, the calling thread in host memory. One message may be under way at a time.
class Sight {
 public:
  virtual ~Sight() = default;
  /// Watches for `messages` messages whose last byte, at `tail`, is `expected`; it is not there yet.
  virtual void open(std::byte* tail, std::byte expected, std::uint64_t messages) = 0;
  /// Messages seen since open(). Throws CudaError when nothing more can be seen.
  virtual std::uint64_t seen() = 0;
  /// No more looking. Throws CudaError.
  virtual void close() = 0;
  /// Who looks: part of a result's proof.
  virtual ObserverProof describe() const = 0;
};

/// The one for memory of this kind. Throws Unavailable, CudaError.
std::unique_ptr<Sight> make_sight(MemoryKind memory, int gpu);

}  // namespace gdrbench::measure
