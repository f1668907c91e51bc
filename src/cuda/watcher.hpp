#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/resident.hpp"

namespace gdrbench::cuda {

/// A kernel that sees messages arrive in its GPU's memory: it polls one byte, the last of a message, until it
/// has the value that a message brings, turns it over for the next one, and tells the host. One message may
/// come at a time: the next one only after the host has learned of the one before.
class GpuWatcher {
 public:
  /// Throws Unavailable, CudaError.
  explicit GpuWatcher(int gpu);

  /// Watches `tail`, in memory of this GPU, for `messages` messages; then the kernel ends by itself. The byte
  /// must not hold `expected` yet. Throws CudaError.
  void start(std::byte* tail, std::byte expected, std::uint64_t messages);
  /// Messages seen since start(). Costs a load of host memory.
  std::uint64_t seen() const { return kernel_.word(0); }
  /// Throws CudaError when the kernel has failed.
  void check() const { kernel_.check(); }
  /// Ends the kernel, whatever it still waits for. Throws CudaError.
  void stop() { kernel_.stop(); }

 private:
  ResidentKernel kernel_;
};

}  // namespace gdrbench::cuda
