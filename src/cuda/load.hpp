#pragma once

#include <cstdint>
#include <optional>

#include "cuda/device_memory.hpp"
#include "cuda/resident.hpp"

namespace gdrbench::cuda {

enum class LoadKind {
  compute,  ///< multiplies and adds in registers
  memory,   ///< reads through 512 MiB of the GPU's memory, more than its caches hold
};

/// A kernel that keeps every SM of a GPU but one busy, with half of the threads that an SM can hold, so that
/// other kernels find room, and counts what it gets done.
class GpuLoad {
 public:
  /// Throws Unavailable, CudaError.
  GpuLoad(int gpu, LoadKind kind);

  /// Throws CudaError.
  void start();
  /// Work done since start(), by all blocks together: a unit is a fixed number of FMAs of a block (some
  /// 20 µs by the clock of an H100), or 1 MiB read. Reads host memory only.
  std::uint64_t units() const;
  /// Throws CudaError.
  void stop() { kernel_.stop(); }

  unsigned blocks() const { return blocks_; }

 private:
  unsigned blocks_;
  std::optional<DeviceMemory> buffer_;
  ResidentKernel kernel_;  // goes before the memory that it reads
};

}  // namespace gdrbench::cuda
