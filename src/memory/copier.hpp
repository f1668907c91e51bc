#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "gdrbench/case.hpp"

namespace gdrbench::memory {

enum class Towards { host, gpu };

struct CopierOptions {
  MemoryKind payload = MemoryKind::host;
  std::span<const std::byte> range{};  ///< of payload memory, in which all copies of it lie; for gdrcopy
  int gpu = 0;
  Towards towards = Towards::host;
  bool pageable = false;  ///< the staging buffer is not pinned: copies then block
  CopyEngine engine = CopyEngine::copy_engine;
  unsigned streams = 1;  ///< of the copy engine, taken in turn
};

/// Moves bytes between payload and staging buffer, one way; what was submitted finishes in that order as far
/// as `finished` tells. Calls may come from any one thread at a time.
class Copier {
 public:
  virtual ~Copier() = default;
  /// Before the first submit after construction or rest(). Throws CudaError.
  virtual void start() {}
  /// Whether one more copy may be submitted now.
  virtual bool has_room() const { return true; }
  virtual void submit(std::byte* destination, const std::byte* source, std::uint64_t length) = 0;
  /// How many of the submitted copies are finished. Throws CudaError.
  virtual std::uint64_t finished() = 0;
  /// Gives the GPU back until the next start(): no kernel of it waits for the host afterwards.
  virtual void rest() noexcept {}
  std::uint64_t submitted() const { return submitted_; }

 protected:
  std::uint64_t submitted_ = 0;
};

/// By the CPU where both sides are host memory, whatever the engine. Throws Unavailable where the engine is
/// not to be had, CudaError.
std::unique_ptr<Copier> make_copier(const CopierOptions& options);

/// The largest piece that the engine copies, bytes.
std::uint64_t max_bytes(CopyEngine engine);

}  // namespace gdrbench::memory
