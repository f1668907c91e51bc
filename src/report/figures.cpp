#include "report/figures.hpp"

#include <cmath>
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

std::optional<double> latency(const Figures& figures, double LatencySummary::*field) {
  if (!figures.latency_us) return std::nullopt;
  return (*figures.latency_us).*field;
}

}  // namespace

std::optional<double> Figures::cpu_seconds_per_gb() const {
  return sum_over(cpu, [](const CpuFigures& rank) { return rank.seconds_per_gb; });
}

std::optional<double> Figures::cpu_pct() const {
  return sum_over(cpu, busy_pct);
}

std::optional<double> busy_pct(const CpuFigures& cpu) {
  return sum(cpu.user_pct, cpu.system_pct);
}

FigureOf figure_of(Metric metric) {
  switch (metric) {
    case Metric::latency_p50:
      return [](const Figures& f) { return latency(f, &LatencySummary::p50); };
    case Metric::latency_p99:
      return [](const Figures& f) { return latency(f, &LatencySummary::p99); };
    case Metric::rate:
      return [](const Figures& f) { return f.bytes_per_second; };
    case Metric::cpu_pct:
      return &Figures::cpu_pct;
    case Metric::cpu_seconds_per_gb:
      return &Figures::cpu_seconds_per_gb;
  }
  return [](const Figures&) -> std::optional<double> { return std::nullopt; };
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
