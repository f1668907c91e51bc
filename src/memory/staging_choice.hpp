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

/// What the copies of one end are for.
struct StagingUse {
  MemoryKind payload = MemoryKind::host;
  int gpu = 0;                       ///< of the payload
  bool shares_gpu = false;           ///< with the other end, whose kernels then take turns with this one's
  std::uint32_t queue_pairs = 1;     ///< each of which has copies of its own
  bool cpu_sends = false;            ///< by sockets; a NIC needs no CPU for that
  bool is_latency_critical = false;  ///< one message at a time, each of them timed
  std::uint64_t message_bytes = 0;
};

/// For pieces of up to `piece_bytes`, where the user has asked for `asked`. Throws CudaError.
EngineChoice choose_engine(const StagingUse& use, const StagingOptions& asked, std::uint64_t piece_bytes);

/// The chunk size of `auto`: the smallest that keeps the copy engine of this end's GPU busy; for sockets what
/// the CPU has least to do with; the default in host memory; for latency a part of the message, so that its
/// copies overlap with the wire. Throws CudaError.
std::uint64_t choose_chunk_bytes(const StagingUse& use);

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
/// Times the copies of the staged paths on the GPU. No kernel of this process may be waiting for the host.
/// Throws Unavailable, CudaError.
StagingCalibration calibrate_staging(int gpu);

EngineChoice choose_engine(const StagingCalibration& calibration, std::uint64_t piece_bytes);
/// The smallest that reaches this share of the best rate.
std::uint64_t choose_chunk_bytes(const StagingCalibration& calibration, double share);

}  // namespace gdrbench::memory
