#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "gdrbench/kinds.hpp"

/// The suites of measurements between ranks, and the metrics that they give. Everything that tells one suite
/// from another stands in this table.
namespace gdrbench {

/// Figures that tables show and paths are compared by; how a repetition gives each is in report/figures.hpp.
enum class Metric { latency_p50, latency_p99, rate, cpu_pct, cpu_seconds_per_gb };
struct MetricSpec {
  Metric metric;
  std::string_view name;     ///< in result files, with the unit
  std::string_view heading;  ///< in tables
  std::string_view unit;
  bool larger_is_better;
};
inline constexpr MetricSpec all_metrics[] = {
    {Metric::latency_p50, "latency_p50_us", "p50", "us", false},
    {Metric::latency_p99, "latency_p99_us", "p99", "us", false},
    {Metric::rate, "bytes_per_second", "rate", "B/s", true},
    {Metric::cpu_pct, "cpu_pct", "CPU %", "% of a core, all ranks", false},
    {Metric::cpu_seconds_per_gb, "cpu_seconds_per_gb", "CPU s/GB", "s per 10^9 bytes, all ranks", false},
};
constexpr const MetricSpec& spec(Metric metric) {
  return all_metrics[static_cast<std::size_t>(metric)];
}

enum class Suite { latency, bandwidth, visible, overlap };

/// message: one message at a time, each of them timed; stream: many in flight, timed together.
enum class Timing { message, stream };
/// What tells that a message has arrived: a completion (or, for a plain write, its last byte), or what a
/// reader of the payload's memory sees: a kernel of the GPU, or the CPU.
enum class ArrivalBy { completion, memory };

struct SuiteSpec {
  Suite suite;
  std::string_view name;
  std::string_view help;
  std::string_view sample;  ///< what a sample, or the time of an iteration, means
  Timing timing;
  ArrivalBy arrival = ArrivalBy::completion;
  bool has_load = false;  ///< the GPUs work beside the transfer
  bool has_events = true;
  OpSet ops = all_ops;
  std::span<const std::uint64_t> sizes;   ///< bytes, by default
  std::span<const Direction> directions;  ///< by default
  std::span<const Metric> metrics;        ///< in the order of tables; paths are compared by each
  /// What each rank does, by its number. Rank 0 measures.
  std::array<std::string_view, 2> roles{"initiator", "responder"};
};

namespace detail {
inline constexpr std::uint64_t message_sizes[] = {8, 4096, 65536};
inline constexpr std::uint64_t stream_sizes[] = {65536, 1 << 20, 8 << 20};
inline constexpr Direction forward_only[] = {Direction::forward};
// Some root complexes forward peer-to-peer writes and not reads, so one direction alone would hide half the
// story.
inline constexpr Direction each_way[] = {Direction::forward, Direction::reverse};
inline constexpr Metric message_metrics[] = {Metric::latency_p50, Metric::latency_p99, Metric::cpu_pct};
inline constexpr Metric stream_metrics[] = {Metric::rate, Metric::cpu_seconds_per_gb};
}  // namespace detail

/// In the order of tables and of the command line's help; a suite's value is its place.
inline constexpr SuiteSpec all_suites[] = {
    {.suite = Suite::latency,
     .name = "latency",
     .help = "Latency of each path, with percentiles",
     .sample = "half a round trip; for read the whole operation",
     .timing = Timing::message,
     .sizes = detail::message_sizes,
     .directions = detail::forward_only,
     .metrics = detail::message_metrics},
    {.suite = Suite::bandwidth,
     .name = "bandwidth",
     .help = "Bandwidth of each path, each way",
     .sample = "one message in each measured direction",
     .timing = Timing::stream,
     .sizes = detail::stream_sizes,
     .directions = detail::each_way,
     .metrics = detail::stream_metrics},
    {.suite = Suite::visible,
     .name = "visible",
     .help = "Latency until a running kernel on the receiving GPU sees the data",
     .sample = "half a round trip, from seeing one message to seeing the answer",
     .timing = Timing::message,
     .arrival = ArrivalBy::memory,
     .has_events = false,
     .ops = static_cast<OpSet>((Op::send | Op::write) | Op::write_imm),
     .sizes = detail::message_sizes,
     .directions = detail::forward_only,
     .metrics = detail::message_metrics},
    {.suite = Suite::overlap,
     .name = "overlap",
     .help = "What GPU work and a transfer lose to each other",
     .sample = "one message in each measured direction",
     .timing = Timing::stream,
     .has_load = true,
     .sizes = detail::stream_sizes,
     .directions = detail::each_way,
     .metrics = detail::stream_metrics},
};

constexpr const SuiteSpec& spec(Suite suite) {
  return all_suites[static_cast<std::size_t>(suite)];
}

template <>
struct EnumNames<Suite> {
  static constexpr std::string_view what = "suite";
  static constexpr auto names = [] {
    std::array<std::pair<Suite, std::string_view>, std::size(all_suites)> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = {all_suites[i].suite, all_suites[i].name};
    return all;
  }();
};
template <>
struct EnumNames<Metric> {
  static constexpr std::string_view what = "metric";
  static constexpr auto names = [] {
    std::array<std::pair<Metric, std::string_view>, std::size(all_metrics)> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = {all_metrics[i].metric, all_metrics[i].name};
    return all;
  }();
};

constexpr bool times_messages(Suite suite) {
  return spec(suite).timing == Timing::message;
}

static_assert(
    [] {
      for (std::size_t i = 0; i < std::size(all_suites); ++i)
        if (all_suites[i].suite != static_cast<Suite>(i)) return false;
      for (std::size_t i = 0; i < std::size(all_metrics); ++i)
        if (all_metrics[i].metric != static_cast<Metric>(i)) return false;
      return true;
    }(),
    "a row is at its value");

}  // namespace gdrbench
