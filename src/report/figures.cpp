#include "report/figures.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "measure/summary.hpp"

namespace gdrbench::report {
namespace {

constexpr double bytes_per_gb = 1e9;

std::optional<double> quotient(double amount, double divisor) {
  if (!(divisor > 0)) return std::nullopt;
  return amount / divisor;
}

std::optional<double> sum(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return std::nullopt;
  return *a + *b;
}

CpuFigures cpu_figures(const CpuUsage& usage, double payload_gb) {
  const auto percent = [&](double seconds) { return quotient(100 * seconds, usage.elapsed_s); };
  return {.user_pct = percent(usage.user_s),
          .system_pct = percent(usage.system_s),
          .thread_pct = percent(usage.thread_s),
          .irq_pct = percent(usage.irq_s),
          .softirq_pct = percent(usage.softirq_s),
          .seconds_per_gb = quotient(usage.user_s + usage.system_s, payload_gb),
          .irq_seconds_per_gb = quotient(usage.irq_s + usage.softirq_s, payload_gb)};
}

std::optional<double> stage_overlap(const RunResult& run) {
  double seconds = 0;
  bool staged = false;
  for (const RankResult& rank : run.ranks) {
    if (!rank.stages) continue;
    staged = true;
    seconds += rank.stages->gpu_to_host_s + rank.stages->wire_s + rank.stages->host_to_gpu_s;
  }
  return staged ? quotient(seconds, run.elapsed_s) : std::nullopt;
}

std::optional<double> sum_over(const std::vector<CpuFigures>& ranks,
                               const std::function<std::optional<double>(const CpuFigures&)>& figure) {
  if (ranks.empty()) return std::nullopt;
  std::optional<double> total = 0;
  for (const CpuFigures& rank : ranks) total = sum(total, figure(rank));
  return total;
}

template <double LatencySummary::*field>
std::optional<double> latency(const Figures& figures) {
  if (!figures.latency_us) return std::nullopt;
  return (*figures.latency_us).*field;
}

struct MetricRow {
  Metric metric;
  std::optional<double> (*figure)(const Figures&);
  std::span<const std::string_view> places;
  RankFigureOf of_rank = nullptr;
};
constexpr std::string_view p50_places[] = {"latency_us/p50"};
constexpr std::string_view p99_places[] = {"latency_us/p99"};
constexpr std::string_view rate_places[] = {"bytes_per_second"};
constexpr std::string_view cpu_pct_places[] = {"cpu/*/user_pct", "cpu/*/system_pct"};
constexpr std::string_view cpu_seconds_places[] = {"cpu/*/seconds_per_gb"};
constexpr MetricRow metric_rows[] = {
    {Metric::latency_p50, latency<&LatencySummary::p50>, p50_places},
    {Metric::latency_p99, latency<&LatencySummary::p99>, p99_places},
    {Metric::rate, [](const Figures& f) { return f.bytes_per_second; }, rate_places},
    {Metric::cpu_pct, [](const Figures& f) { return f.cpu_pct(); }, cpu_pct_places, busy_pct},
    {Metric::cpu_seconds_per_gb, [](const Figures& f) { return f.cpu_seconds_per_gb(); }, cpu_seconds_places,
     [](const CpuFigures& cpu) { return cpu.seconds_per_gb; }},
};
static_assert(
    [] {
      for (std::size_t i = 0; i < std::size(all_metrics); ++i)
        if (i >= std::size(metric_rows) || metric_rows[i].metric != all_metrics[i].metric) return false;
      return true;
    }(),
    "every metric has its row");

}  // namespace

std::optional<double> Figures::cpu_seconds_per_gb() const {
  return sum_over(cpu, [](const CpuFigures& rank) { return rank.seconds_per_gb; });
}

std::optional<double> Figures::cpu_pct() const {
  return sum_over(cpu, busy_pct);
}

std::uint64_t messages_lost(const RunResult& run) {
  std::uint64_t lost = 0;
  for (const RankResult& rank : run.ranks) lost += rank.messages_lost;
  return lost;
}

std::optional<double> busy_pct(const CpuFigures& cpu) {
  return sum(cpu.user_pct, cpu.system_pct);
}

FigureOf figure_of(Metric metric) {
  return metric_rows[static_cast<std::size_t>(metric)].figure;
}

std::span<const std::string_view> places_of(Metric metric) {
  return metric_rows[static_cast<std::size_t>(metric)].places;
}

RankFigureOf rank_figure_of(Metric metric) {
  return metric_rows[static_cast<std::size_t>(metric)].of_rank;
}

Metric cpu_metric(Suite suite) {
  const auto metrics = spec(suite).metrics;
  return *std::find_if(metrics.begin(), metrics.end(),
                       [](Metric metric) { return rank_figure_of(metric) != nullptr; });
}

Figures figures(const Case& c, const RunResult& run) {
  const double payload_gb = static_cast<double>(run.payload_bytes) / bytes_per_gb;
  Figures result;
  double messages = static_cast<double>(run.iterations);
  if (!times_messages(c.suite)) {
    if (c.direction == Direction::both) messages *= 2;  // iterations count one direction
    result.bytes_per_second = quotient(static_cast<double>(run.payload_bytes), run.elapsed_s);
  } else if (!run.ranks.empty()) {
    result.latency_us = run.ranks.front().latency_us;
  }
  result.messages_per_second = quotient(messages, run.elapsed_s);
  result.stage_overlap = stage_overlap(run);
  for (const RankResult& rank : run.ranks) result.cpu.push_back(cpu_figures(rank.cpu, payload_gb));
  return result;
}

std::vector<Figures> figures(const CaseResult& result) {
  std::vector<Figures> all;
  all.reserve(result.repetitions.size());
  for (const RunResult& run : result.repetitions) all.push_back(figures(result.test_case, run));
  return all;
}

std::vector<double> values_of(std::span<const Figures> repetitions, const FigureOf& figure) {
  std::vector<double> values;
  for (const Figures& repetition : repetitions)
    values.push_back(figure(repetition).value_or(std::numeric_limits<double>::quiet_NaN()));
  return values;
}

std::optional<double> median_of(std::span<const Figures> repetitions, const FigureOf& figure) {
  std::vector<double> values = values_of(repetitions, figure);
  std::erase_if(values, [](double value) { return std::isnan(value); });
  if (values.empty()) return std::nullopt;
  return measure::median(std::move(values));
}

}  // namespace gdrbench::report
