#pragma once

namespace gdrbench {

/// A kernel that runs until it is told to stop, in a stream of its own; ten seconds at most, so that what
/// waits for it fails a test and does not hang it. Construct it after everything that allocates.
class ResidentKernel {
 public:
  /// On the current GPU. Throws CudaError.
  ResidentKernel();
  ~ResidentKernel();
  ResidentKernel(const ResidentKernel&) = delete;
  ResidentKernel& operator=(const ResidentKernel&) = delete;

  /// False once it has ended, which it does by itself only when its time is over.
  bool runs() const;

 private:
  int* stop_ = nullptr;     ///< mapped host memory
  void* stream_ = nullptr;  ///< cudaStream_t
};

}  // namespace gdrbench
