#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gdrbench/case.hpp"

/// What `auto` means for staging copies: measured on this end's GPU, once a process, in a few tens of
/// milliseconds.
namespace gdrbench::memory {

struct EngineChoice {
  CopyEngine engine = CopyEngine::automatic;  ///< automatic: the CPU copies
  std::string reason;
  std::string name() const {
    return engine == CopyEngine::automatic ? "cpu" : std::string(to_string(engine));
  }
};

/// For pieces of up to `piece_bytes` of the case at this end. Throws CudaError.
EngineChoice choose_engine(const Case& c, std::uint64_t piece_bytes);

/// The chunk size of `auto`: the smallest that keeps the copy engine of this end's GPU busy; for tcp what the
/// CPU has least to do with; the default in host memory; for latency a part of the message, so that its
/// copies overlap with the wire. Throws CudaError.
std::uint64_t choose_chunk_bytes(const Case& c);

/// What was measured on a GPU.
struct StagingCalibration {
  struct Small {
    std::uint64_t size_bytes;
    /// Of a copy to the host and one to the GPU; the engines that are there.
    std::vector<std::pair<CopyEngine, double>> pair_us;
  };
  struct Large {
    std::uint64_t chunk_bytes;
    double bytes_per_second;  ///< of the slower way
  };
  std::vector<Small> small;  ///< ascending
  std::vector<Large> large;  ///< ascending
};
EngineChoice choose_engine(const StagingCalibration& calibration, std::uint64_t piece_bytes);
/// The smallest that reaches this share of the best rate.
std::uint64_t choose_chunk_bytes(const StagingCalibration& calibration, double share);

}  // namespace gdrbench::memory
