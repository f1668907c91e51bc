#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "cuda/stream.hpp"

namespace gdrbench::cuda {

/// cudaMemcpyPeerAsync from one GPU to another (or the same) within this process, timed by both clocks. Peer
/// access is enabled where the pair has it; without it the driver stages the copies through host memory.
class PeerCopy {
 public:
  struct Times {
    double host_s = 0;    ///< from before the first copy is started until the host knows that all are done
    double device_s = 0;  ///< between CUDA events around the copies
  };

  /// Throws Unavailable, CudaError.
  PeerCopy(int gpu, int other);
  /// `count` copies one after another from `gpu`'s memory to `other`'s. Throws CudaError.
  Times run(std::byte* destination, const std::byte* source, std::uint64_t length, std::uint64_t count);

 private:
  int gpu_ = 0, other_ = 0;
  Stream stream_;  ///< the source's
  std::unique_ptr<void, DestroyEvent> before_, after_;
};

}  // namespace gdrbench::cuda
