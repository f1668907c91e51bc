#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "measure/summary.hpp"

namespace gdrbench::measure {
namespace {

// 1 to n µs, in nanoseconds.
std::vector<std::int64_t> one_to(int n) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) values[static_cast<std::size_t>(i)] = 1000 * (i + 1);
  std::shuffle(values.begin(), values.end(), std::mt19937(7));
  return values;
}

TEST(Summary, percentiles_of_ten_thousand_known_samples_are_exact_whatever_their_order) {
  const LatencySummary summary = summarise(one_to(10'000));
  EXPECT_EQ(summary.min, 1);
  EXPECT_EQ(summary.mean, 5000.5);
  EXPECT_EQ(summary.p50, 5000);
  EXPECT_EQ(summary.p90, 9000);
  EXPECT_EQ(summary.p99, 9900);
  EXPECT_EQ(summary.p99_9, 9990);
  EXPECT_EQ(summary.p99_99, 9999);
  EXPECT_EQ(summary.max, 10'000);
}

TEST(Summary, rank_is_not_pushed_up_by_rounding) {
  // 99.9 / 100 · 1000 is 999.0000000000001 in doubles.
  EXPECT_EQ(summarise(one_to(1000)).p99_9, 999);
}

TEST(Summary, rank_is_rounded_up_and_never_interpolated) {
  const LatencySummary summary = summarise(one_to(5));
  EXPECT_EQ(summary.p50, 3);  // rank ⌈2.5⌉
  EXPECT_EQ(summary.p90, 5);  // rank ⌈4.5⌉
  EXPECT_EQ(summarise(one_to(4)).p50, 2);
}

TEST(Summary, one_sample_is_every_percentile) {
  const LatencySummary summary = summarise(std::vector<std::int64_t>{2500});
  EXPECT_EQ(summary.min, 2.5);
  EXPECT_EQ(summary.p50, 2.5);
  EXPECT_EQ(summary.p99_99, 2.5);
  EXPECT_EQ(summary.max, 2.5);
}

TEST(Summary, no_samples_give_zeros) {
  EXPECT_EQ(summarise({}).max, 0);
}

TEST(Median, is_the_middle_or_the_mean_of_the_two_middle_ones) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({}), 0);
}

TEST(StudentT, agrees_with_printed_tables) {
  EXPECT_NEAR(student_t_975(1), 12.706, 5e-4);
  EXPECT_NEAR(student_t_975(4), 2.776, 5e-4);
  EXPECT_NEAR(student_t_975(30), 2.042, 5e-4);
  EXPECT_NEAR(student_t_975(31), 2.0395, 5e-4);
  EXPECT_NEAR(student_t_975(40), 2.0211, 5e-4);
  EXPECT_NEAR(student_t_975(120), 1.9799, 5e-4);
  EXPECT_NEAR(student_t_975(1'000'000), 1.95996, 1e-4);
}

TEST(PairedRatio, is_the_geometric_mean_with_a_t_interval_of_the_log_ratios) {
  // ln ratios 0 and ln 4: mean ln 2, standard deviation √2 · ln 2, standard error ln 2, t(1) = tan(0.475 π)
  // = 12.7062.
  const auto ratio = paired_ratio(std::vector<double>{1, 8}, std::vector<double>{1, 2});
  ASSERT_TRUE(ratio && ratio->interval);
  EXPECT_NEAR(ratio->estimate, 2, 1e-12);
  EXPECT_NEAR(ratio->interval->low, std::pow(2, 1 - 12.706204736), 1e-9);
  EXPECT_NEAR(ratio->interval->high, std::pow(2, 1 + 12.706204736), 1e-5);
  EXPECT_EQ(ratio->pairs, 2U);
}

TEST(PairedRatio, drift_that_hits_both_paths_alike_does_not_widen_the_interval) {
  const auto ratio = paired_ratio(std::vector<double>{10, 20, 40}, std::vector<double>{20, 40, 80});
  ASSERT_TRUE(ratio && ratio->interval);
  EXPECT_DOUBLE_EQ(ratio->estimate, 0.5);
  EXPECT_DOUBLE_EQ(ratio->interval->low, 0.5);
  EXPECT_DOUBLE_EQ(ratio->interval->high, 0.5);
}

TEST(PairedRatio, swapping_the_paths_inverts_everything) {
  const std::vector<double> a = {3, 4, 5}, b = {6, 7, 11};
  const auto ratio = paired_ratio(a, b);
  const auto inverse = paired_ratio(b, a);
  ASSERT_TRUE(ratio && ratio->interval && inverse && inverse->interval);
  EXPECT_NEAR(ratio->estimate * inverse->estimate, 1, 1e-12);
  EXPECT_NEAR(ratio->interval->low * inverse->interval->high, 1, 1e-12);
}

TEST(PairedRatio, one_pair_gives_no_interval_and_surplus_repetitions_are_left_out) {
  const auto ratio = paired_ratio(std::vector<double>{1, 99, 99}, std::vector<double>{2});
  ASSERT_TRUE(ratio);
  EXPECT_EQ(ratio->estimate, 0.5);
  EXPECT_FALSE(ratio->interval);
  EXPECT_EQ(ratio->pairs, 1U);
}

TEST(PairedRatio, unusable_pairs_are_dropped_together) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto ratio = paired_ratio(std::vector<double>{nan, 0, 5, 4}, std::vector<double>{1, 1, 0, 2});
  ASSERT_TRUE(ratio);
  EXPECT_EQ(ratio->pairs, 1U);
  EXPECT_EQ(ratio->estimate, 2);
  EXPECT_FALSE(paired_ratio(std::vector<double>{0}, std::vector<double>{1}));
  EXPECT_FALSE(paired_ratio({}, {}));
}

}  // namespace
}  // namespace gdrbench::measure
