#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "gdrbench/case.hpp"
#include "gdrbench/report.hpp"
#include "gdrbench/run_result.hpp"

namespace gdrbench::report {

/// CPU cost of one rank; percent of one core. Nothing where no time passed.
struct CpuFigures {
  std::optional<double> user_pct;     ///< process, all threads
  std::optional<double> system_pct;   ///< process, all threads
  std::optional<double> thread_pct;   ///< measuring thread, user and system
  std::optional<double> irq_pct;      ///< whole host
  std::optional<double> softirq_pct;  ///< whole host
  /// User and system time of the process per 10⁹ bytes of payload; nothing without payload.
  std::optional<double> seconds_per_gb;
  /// Interrupt and softirq time of the whole host per 10⁹ bytes of payload.
  std::optional<double> irq_seconds_per_gb;
};

/// What a repetition says once its raw values are divided; nothing where it was not measured.
struct Figures {
  std::optional<LatencySummary> latency_us;
  std::optional<double> bytes_per_second;     ///< bandwidth; both directions summed
  std::optional<double> messages_per_second;  ///< bandwidth: both directions summed; latency: round trips
  /// Staged paths, streams: the seconds of all stages of all ranks together, by the elapsed time. 1: one
  /// after another; 3 in each direction measured: copy, wire and copy at the same time all the time.
  std::optional<double> stage_overlap;
  std::vector<CpuFigures> cpu;  ///< by rank

  /// All ranks together; nothing where one does not tell.
  std::optional<double> cpu_seconds_per_gb() const;
  std::optional<double> cpu_pct() const;
};

Figures figures(const Case& c, const RunResult& run);
std::vector<Figures> figures(const CaseResult& result);

/// Of all ranks, as far as they know.
std::uint64_t messages_lost(const RunResult& run);

/// User and system time of the process.
std::optional<double> busy_pct(const CpuFigures& cpu);

using FigureOf = std::function<std::optional<double>(const Figures&)>;
/// How a repetition gives the metric.
FigureOf figure_of(Metric metric);
/// Where a repetition of a result file has it: "cpu/*/user_pct", "*" standing for every rank. Several are
/// added up.
std::span<const std::string_view> places_of(Metric metric);
/// What a rank adds to a metric that is a sum over ranks; empty for the others.
using RankFigureOf = std::optional<double> (*)(const CpuFigures&);
RankFigureOf rank_figure_of(Metric metric);
/// The suite's metric of CPU cost.
Metric cpu_metric(Suite suite);

/// The metric of every repetition that has it; NaN stands for the others, so that pairs stay pairs.
std::vector<double> values_of(std::span<const Figures> repetitions, const FigureOf& figure);
/// Over the repetitions that have the metric; nothing when none has.
std::optional<double> median_of(std::span<const Figures> repetitions, const FigureOf& figure);

}  // namespace gdrbench::report
