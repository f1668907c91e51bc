#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "cuda/memory.hpp"
#include "cuda/stream.hpp"

namespace gdrbench::cuda {

/// A kernel that stays on the GPU while the host works, and tells the host how far it is through memory of
/// the host that the GPU writes to. It ends when told to, at the latest in the destructor.
///
/// While it runs, this process must make no call that waits for the whole GPU: no allocation, registration
/// or freeing of GPU or pinned memory, nothing on the legacy default stream. They could wait for ever.
class ResidentKernel {
 public:
  /// `kernel` is loaded now, since loading may wait for kernels that run; `words` is how many counters it
  /// has. Throws Unavailable, CudaError.
  ResidentKernel(int gpu, const void* kernel, std::size_t words);
  ~ResidentKernel();
  ResidentKernel(const ResidentKernel&) = delete;
  ResidentKernel& operator=(const ResidentKernel&) = delete;

  /// Sets the counters to 0 and starts the kernel, which is over, on a stream of the lowest priority that
  /// waits for no other. `arguments` as for cudaLaunchKernel. Throws CudaError.
  void launch(unsigned blocks, unsigned threads, void** arguments);
  /// Tells the kernel to end and waits until it has. Throws CudaError when it failed.
  void stop();
  /// Throws CudaError when the kernel has failed. A call of the driver: for now and then.
  void check() const;

  /// A counter as the kernel last wrote it.
  std::uint64_t word(std::size_t index) const;
  std::size_t words() const { return words_; }
  /// For the kernel: not 0 once it has to end, and the counters. Both are host memory.
  const unsigned* stop_flag() const;
  unsigned long long* counters() const;

 private:
  std::byte* address_of_word(std::size_t index) const;

  int gpu_;
  const void* kernel_;
  std::size_t words_;
  PinnedMemory shared_;
  std::unique_ptr<void, DestroyStream> stream_;
  bool running_ = false;
};

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
