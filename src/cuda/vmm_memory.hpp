#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace gdrbench::cuda {

struct UnmapVmmMemory {
  std::uint64_t length = 0;
  void operator()(void* address) const noexcept;
};

/// cuMemCreate memory, mapped for reading and writing by its GPU and asked to be RDMA capable where the
/// device offers that.
class VmmMemory {
 public:
  /// `length` in bytes. Throws Unavailable or CudaError.
  VmmMemory(int gpu, std::uint64_t length);
  std::byte* address() const { return static_cast<std::byte*>(mapping_.get()); }

 private:
  std::unique_ptr<void, UnmapVmmMemory> mapping_;
};

}  // namespace gdrbench::cuda
