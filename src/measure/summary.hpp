#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gdrbench/run_result.hpp"

namespace gdrbench::measure {

/// Exact percentiles by nearest rank: of n ascending samples, pXX is number ⌈XX/100 · n⌉, counted from 1. It
/// is always one of the samples, never interpolated. All zero for no samples.
LatencySummary summarise(std::span<const std::int64_t> samples_ns);

/// The middle value; the mean of the two middle ones for an even count. 0 for no values.
double median(std::vector<double> values);

/// How much larger one path's figure is than another's.
struct RatioEstimate {
  struct Interval {
    double low = 0;
    double high = 0;
  };
  double estimate = 0;               ///< geometric mean of the paired ratios
  std::optional<Interval> interval;  ///< 95 %; none with fewer than two pairs
  std::size_t pairs = 0;
};

/// The ratio a ÷ b from repetitions that ran side by side: a[i] is paired with b[i], surplus ones are left
/// out, so is a pair that is not positive and finite. With l_i = ln(a_i / b_i), mean m and sample standard
/// deviation s over n pairs: estimate e^m, interval e^(m ± t·s/√n), t being the 0.975 quantile of Student's
/// distribution with n − 1 degrees of freedom. None without any usable pair.
std::optional<RatioEstimate> paired_ratio(std::span<const double> a, std::span<const double> b);

/// 0.975 quantile of Student's t distribution; `degrees_of_freedom` is at least 1.
double student_t_975(std::size_t degrees_of_freedom);

}  // namespace gdrbench::measure
