#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gdrbench/case.hpp"

namespace gdrbench::benchmarks {

inline std::vector<Path> default_paths() {
  std::vector<Path> all;
  for (const PathSpec& path : all_paths)
    if (path.by_default) all.push_back(path.path);
  return all;
}

/// An RDMA device with its GPU.
struct PairOption {
  std::string device;
  int gpu = 0;
};

/// What the initiator was asked to measure. Empty lists and absent values: the suite's defaults.
struct MeasureOptions {
  std::vector<Suite> suites;
  std::vector<Path> paths = default_paths();
  std::vector<Path> required;  ///< --require: not to be skipped
  std::vector<Op> ops{Op::send};
  std::vector<std::uint64_t> sizes;                      ///< bytes
  std::vector<Direction> directions;                     ///< bandwidth
  std::vector<Load> loads{Load::compute, Load::memory};  ///< overlap
  std::vector<CompletionMode> completions{CompletionMode::poll};
  std::optional<MemoryKind> memory;  ///< absent: cuda where both ends have a GPU, else host
  std::optional<FabricKind> fabric;  ///< absent: the best there is
  std::string device, remote_device;
  std::optional<int> gid_index, remote_gid_index;
  std::optional<int> gpu, remote_gpu;  ///< absent: nearest to the end's RDMA device
  /// --pairs: measured alone and then all at once; empty: one pair, by the fields above.
  std::vector<PairOption> pairs, remote_pairs;
  bool all_pairs = false;  ///< --pairs auto: every GPU with its nearest RDMA device
  BindBy bind = BindBy::automatic;
  bool loopback = false;  ///< both ends on this node, sharing its GPUs
  std::uint32_t depth = 16;
  std::uint32_t queue_pairs = 1;
  std::optional<std::uint32_t> tcp_threads;  ///< absent: each end's own choice
  std::uint64_t footprint_bytes = std::uint64_t{64} << 20;
  StagingOptions staging;
  bool chunk_given = false;  ///< staging.chunk_bytes was asked for, also of `auto`
  VerbsOptions verbs;
  double time_budget_s = 60;
};

}  // namespace gdrbench::benchmarks
