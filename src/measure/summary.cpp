#include "measure/summary.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>

namespace gdrbench::measure {
namespace {

// The percentile comes in hundredths of a percent: in integers ⌈99.9 % of 1000⌉ is 999, in doubles it is
// 1000.
double nearest_rank_us(std::span<const std::int64_t> ascending, std::size_t hundredths_of_percent) {
  const std::size_t rank = (ascending.size() * hundredths_of_percent + 9'999) / 10'000;
  return static_cast<double>(ascending[std::max<std::size_t>(rank, 1) - 1]) * 1e-3;
}

}  // namespace

LatencySummary summarise(std::span<const std::int64_t> samples_ns) {
  if (samples_ns.empty()) return {};
  std::vector<std::int64_t> ascending(samples_ns.begin(), samples_ns.end());
  std::sort(ascending.begin(), ascending.end());
  const double sum = std::accumulate(ascending.begin(), ascending.end(), 0.0) * 1e-3;
  return {.min = static_cast<double>(ascending.front()) * 1e-3,
          .mean = sum / static_cast<double>(ascending.size()),
          .p50 = nearest_rank_us(ascending, 5'000),
          .p90 = nearest_rank_us(ascending, 9'000),
          .p99 = nearest_rank_us(ascending, 9'900),
          .p99_9 = nearest_rank_us(ascending, 9'990),
          .p99_99 = nearest_rank_us(ascending, 9'999),
          .max = static_cast<double>(ascending.back()) * 1e-3};
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double student_t_975(std::size_t degrees_of_freedom) {
  return boost::math::quantile(boost::math::students_t(static_cast<double>(degrees_of_freedom)), 0.975);
}

std::optional<RatioEstimate> paired_ratio(std::span<const double> a, std::span<const double> b) {
  std::vector<double> logs;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const bool usable = a[i] > 0 && b[i] > 0 && std::isfinite(a[i]) && std::isfinite(b[i]);
    if (usable) logs.push_back(std::log(a[i] / b[i]));
  }
  if (logs.empty()) return std::nullopt;

  const auto n = static_cast<double>(logs.size());
  const double mean = std::accumulate(logs.begin(), logs.end(), 0.0) / n;
  RatioEstimate result{.estimate = std::exp(mean), .interval = std::nullopt, .pairs = logs.size()};
  if (logs.size() < 2) return result;

  double squares = 0;
  for (const double value : logs) squares += (value - mean) * (value - mean);
  const double half_width = student_t_975(logs.size() - 1) * std::sqrt(squares / (n - 1) / n);
  result.interval = {std::exp(mean - half_width), std::exp(mean + half_width)};
  return result;
}

}  // namespace gdrbench::measure
