#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gdrbench/case.hpp"

namespace gdrbench {

struct RunRequest {
  std::uint64_t iterations = 1;  ///< round trips (latency) or messages in each measured direction (bandwidth)
  std::uint64_t warmup = 0;      ///< untimed, before them
  std::uint64_t seed = 0;        ///< of the pattern; differs in every run
  /// The client gives the run up then; not told to servers.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

/// CPU time spent by one rank over the timed part of a run. Seconds; divide by elapsed for percent of one
/// core.
struct CpuUsage {
  double elapsed_s = 0;
  double user_s = 0;    ///< of the process, all threads; of the measuring one where several pairs run at once
  double system_s = 0;  ///< likewise
  double thread_s = 0;  ///< user and system time of the measuring thread alone
  double irq_s = 0;     ///< of the whole host
  double softirq_s = 0;  ///< of the whole host
};

/// Seconds of a run during which at least one piece of a staged path was in each stage, at one rank. Together
/// they exceed the elapsed time by as much as the stages overlap.
struct StageTimes {
  double gpu_to_host_s = 0;
  double wire_s = 0;  ///< posted and not yet completed, at the rank that posts
  double host_to_gpu_s = 0;
};

/// How fast one rank's GPU did its own work: without a transfer, and during the timed part of a run.
struct LoadRates {
  double alone_units_per_second = 0;
  double together_units_per_second = 0;
  bool operator==(const LoadRates&) const = default;
};

/// Exact percentiles over all samples, microseconds. pXX is the smallest sample that at least XX % are ≤ to
/// (nearest rank).
struct LatencySummary {
  double min = 0, mean = 0, p50 = 0, p90 = 0, p99 = 0, p99_9 = 0, p99_99 = 0, max = 0;
};

/// What one rank saw of a run.
struct RankResult {
  double elapsed_s = 0;  ///< timed part, by this rank's clock
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t messages_lost = 0;  ///< that this rank knows of; only unreliable transports lose any
  CpuUsage cpu{};
  std::optional<StageTimes> stages{};          ///< staged paths, streams
  std::optional<LatencySummary> latency_us{};  ///< of the rank that times messages
  std::optional<LoadRates> load{};             ///< where the GPU works beside the transfer
  /// Of the rank that times messages, in order: what a sample means is in the suite's row. Stays in the
  /// process that took them.
  std::vector<std::int64_t> samples_ns{};
};

/// One run of a case.
struct RunResult {
  std::uint64_t iterations = 0;
  double elapsed_s = 0;             ///< by the clock of rank 0
  std::uint64_t payload_bytes = 0;  ///< moved in the measured direction(s)
  std::vector<RankResult> ranks{};  ///< by rank
  bool verified = false;
  std::string started;  ///< RFC 3339, UTC
};

}  // namespace gdrbench
