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
  if (!run.initiator_stages && !run.responder_stages) return std::nullopt;
  double seconds = 0;
  for (const auto& end : {run.initiator_stages, run.responder_stages})
    if (end) seconds += end->gpu_to_host_s + end->wire_s + end->host_to_gpu_s;
  return quotient(seconds, run.elapsed_s);
}

}  // namespace

std::optional<double> Figures::cpu_seconds_per_gb() const {
  return sum(initiator.seconds_per_gb, responder.seconds_per_gb);
}

std::optional<double> Figures::cpu_pct() const {
  return sum(busy_pct(initiator), busy_pct(responder));
}

std::optional<double> busy_pct(const CpuFigures& cpu) {
  return sum(cpu.user_pct, cpu.system_pct);
}

Figures figures(const Case& c, const RunResult& run) {
  const double payload_gb = static_cast<double>(run.payload_bytes) / bytes_per_gb;
  Figures result;
  double messages = static_cast<double>(run.iterations);
  if (!times_messages(c.suite)) {
    if (c.direction == Direction::both) messages *= 2;  // iterations count one direction
    result.bytes_per_second = quotient(static_cast<double>(run.payload_bytes), run.elapsed_s);
  } else if (!run.samples_us.empty()) {
    result.latency_us = measure::summarise(run.samples_us);
  }
  result.messages_per_second = quotient(messages, run.elapsed_s);
  result.stage_overlap = stage_overlap(run);
  result.initiator = cpu_figures(run.initiator, payload_gb);
  result.responder = cpu_figures(run.responder, payload_gb);
  return result;
}

std::vector<Figures> figures(const CaseResult& result) {
  std::vector<Figures> all;
  all.reserve(result.repetitions.size());
  for (const RunResult& run : result.repetitions) all.push_back(figures(result.test_case, run));
  return all;
}

std::vector<double> values_of(std::span<const Figures> repetitions, const Metric& metric) {
  std::vector<double> values;
  for (const Figures& repetition : repetitions)
    values.push_back(metric(repetition).value_or(std::numeric_limits<double>::quiet_NaN()));
  return values;
}

std::optional<double> median_of(std::span<const Figures> repetitions, const Metric& metric) {
  std::vector<double> values = values_of(repetitions, metric);
  std::erase_if(values, [](double value) { return std::isnan(value); });
  if (values.empty()) return std::nullopt;
  return measure::median(std::move(values));
}

}  // namespace gdrbench::report
