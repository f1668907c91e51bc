#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace gdrbench::cuda {

struct FreePinnedMemory {
  void operator()(void* address) const noexcept;
};

/// Zeroed host memory that kernels of every GPU reach at the same address (cudaHostAlloc, portable and
/// mapped). Making and freeing it waits for kernels of this process, so none may be waiting for the host.
class PinnedMemory {
 public:
  /// `length` in bytes. Throws Unavailable or CudaError.
  PinnedMemory(int gpu, std::uint64_t length);
  std::byte* address() const { return static_cast<std::byte*>(address_.get()); }

 private:
  std::unique_ptr<void, FreePinnedMemory> address_;
};

}  // namespace gdrbench::cuda
