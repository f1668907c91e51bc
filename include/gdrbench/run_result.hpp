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
  /// The initiator gives the run up then; not told to the other end.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

/// CPU time spent by one end over the timed part of a run. Seconds; divide by elapsed for percent of one
/// core.
struct CpuUsage {
  double elapsed_s = 0;
  double user_s = 0;     ///< of the process, all threads
  double system_s = 0;   ///< of the process, all threads
  double thread_s = 0;   ///< user and system time of the measuring thread alone
  double irq_s = 0;      ///< of the whole host, above what it spends when idle is not subtracted
  double softirq_s = 0;  ///< of the whole host
};

/// Seconds of a run during which at least one piece of a staged path was in each stage, at one end. Together
/// they exceed the elapsed time by as much as the stages overlap.
struct StageTimes {
  double gpu_to_host_s = 0;
  double wire_s = 0;  ///< posted and not yet completed, at the end that posts
  double host_to_gpu_s = 0;
};

/// How fast one end's GPU did its own work: without a transfer, and during the timed part of a run.
struct LoadRates {
  double alone_units_per_second = 0;
  double together_units_per_second = 0;
  bool operator==(const LoadRates&) const = default;
};

/// What one end saw of a run.
struct EndResult {
  double elapsed_s = 0;  ///< timed part, by this end's clock
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;
  CpuUsage cpu{};
  std::optional<StageTimes> stages{};  ///< staged paths, bandwidth and overlap
  std::vector<double> samples_us{};    ///< latency, initiator only: one a round trip, in order
  std::optional<LoadRates> load{};     ///< overlap with a load
};

/// Exact percentiles over all samples, microseconds. pXX is the smallest sample that at least XX % are ≤ to
/// (nearest rank).
struct LatencySummary {
  double min = 0, mean = 0, p50 = 0, p90 = 0, p99 = 0, p99_9 = 0, p99_99 = 0, max = 0;
};

/// One repetition of a case, both ends.
struct RunResult {
  std::uint64_t iterations = 0;
  double elapsed_s = 0;
  std::uint64_t payload_bytes = 0;  ///< moved in the measured direction(s)
  std::vector<double> samples_us{};
  CpuUsage initiator{};
  CpuUsage responder{};
  std::optional<StageTimes> initiator_stages{}, responder_stages{};
  std::optional<LoadRates> initiator_load{};
  std::optional<LoadRates> responder_load{};
  bool verified = false;
  std::string started;  ///< RFC 3339, UTC
};

}  // namespace gdrbench
