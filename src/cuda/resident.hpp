#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "cuda/pinned_memory.hpp"
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

}  // namespace gdrbench::cuda
