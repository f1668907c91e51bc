#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "cuda/stream.hpp"
#include "memory/copier.hpp"

namespace gdrbench::memory {

/// By the GPU's copy engine, over several streams in turn: the engine then goes on with one while the next
/// copy of another is set up.
class StreamCopier final : public Copier {
 public:
  explicit StreamCopier(const CopierOptions& options);
  /// The memory may go as soon as the copier is gone.
  ~StreamCopier() override;
  StreamCopier(const StreamCopier&) = delete;
  StreamCopier& operator=(const StreamCopier&) = delete;

  void submit(std::byte* destination, const std::byte* source, std::uint64_t length) override;
  std::uint64_t finished() override;

 private:
  int gpu_;
  cuda::CopyKind kind_;
  bool pageable_;
  std::vector<cuda::Stream> streams_;
  std::vector<cuda::Event> spare_;
  std::deque<cuda::Event> in_flight_;  ///< one a copy, in the order of submission
  std::uint64_t finished_ = 0;
};

}  // namespace gdrbench::memory
