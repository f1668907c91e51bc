#include <gtest/gtest.h>

#include <cmath>

#include "../fixtures/sample_result.hpp"
#include "report/comparison.hpp"

namespace gdrbench::report {
namespace {

ResultDocument with(std::vector<CaseResult> cases) {
  ResultDocument document;
  document.cases = std::move(cases);
  return document;
}

Comparison compare(const ResultDocument& document) {
  return report::compare(Points(document));
}

const Ratio* find(const Comparison& comparison, std::string_view metric, Path path, Path reference) {
  for (const auto& point : comparison.points)
    for (const auto& ratio : point.ratios)
      if (spec(point.metric).name == metric && ratio.pair.path == path && ratio.pair.reference == reference)
        return &ratio;
  return nullptr;
}

const Crossover* find_crossover(const Comparison& comparison, std::string_view metric, Path path,
                                Path reference) {
  for (const auto& crossover : comparison.crossovers)
    if (spec(crossover.metric).name == metric && crossover.pair.path == path &&
        crossover.pair.reference == reference)
      return &crossover;
  return nullptr;
}

TEST(Comparison, latency_ratio_is_taken_of_the_medians_of_paired_repetitions) {
  const auto comparison = compare(
      with({sample::latency_case(Path::rdma, 8, {40, 60}), sample::latency_case(Path::gdr, 8, {30, 45})}));
  const Ratio* ratio = find(comparison, "latency_p50_us", Path::gdr, Path::rdma);
  ASSERT_NE(ratio, nullptr);
  EXPECT_NEAR(ratio->value.estimate, 0.75, 1e-12);
  EXPECT_EQ(ratio->value.pairs, 2U);
}

TEST(Comparison, cpu_ratio_adds_both_ends_per_payload) {
  // Same rate, half the CPU time.
  const auto comparison = compare(with({sample::bandwidth_case(Path::tcp, 4096, {1e9, 1e9}, 1),
                                        sample::bandwidth_case(Path::rdma, 4096, {1e9, 1e9}, 0.5)}));
  const Ratio* ratio = find(comparison, "cpu_seconds_per_gb", Path::rdma, Path::tcp);
  ASSERT_NE(ratio, nullptr);
  EXPECT_NEAR(ratio->value.estimate, 0.5, 1e-12);
}

TEST(Comparison, only_paths_that_ran_are_compared) {
  const auto comparison =
      compare(with({sample::latency_case(Path::rdma, 8, {40, 60}), sample::latency_case(Path::gdr, 8, {}),
                    sample::latency_case(Path::tcp, 8, {50, 70})}));
  EXPECT_EQ(find(comparison, "latency_p50_us", Path::gdr, Path::rdma), nullptr);
  EXPECT_NE(find(comparison, "latency_p50_us", Path::rdma, Path::tcp), nullptr);
}

TEST(Comparison, different_directions_sizes_and_depths_never_meet) {
  CaseResult reverse = sample::bandwidth_case(Path::gdr, 4096, {1e9});
  reverse.test_case.direction = Direction::reverse;
  CaseResult deep = sample::bandwidth_case(Path::gdr, 4096, {1e9});
  deep.test_case.depth = 64;
  const auto comparison = compare(with({sample::bandwidth_case(Path::rdma, 4096, {1e9}), reverse, deep,
                                        sample::bandwidth_case(Path::gdr, 8192, {1e9})}));
  EXPECT_TRUE(comparison.points.empty());
  EXPECT_TRUE(comparison.crossovers.empty());
}

TEST(Comparison, settings_of_the_ends_and_staging_of_direct_paths_do_not_keep_cases_apart) {
  CaseResult rdma = sample::bandwidth_case(Path::rdma, 4096, {1e9});
  rdma.test_case.verbs.device = "mlx5_0";
  rdma.test_case.gpu = 1;
  rdma.test_case.staging.variant = Staging::plain;
  const auto comparison = compare(with({sample::bandwidth_case(Path::gdr, 4096, {2e9}), rdma}));
  ASSERT_EQ(comparison.points.size(), 2U);  // bytes per second, CPU
  EXPECT_NEAR(find(comparison, "bytes_per_second", Path::gdr, Path::rdma)->value.estimate, 2, 1e-12);
}

TEST(Comparison, baselines_are_found_at_points_of_gpu_memory) {
  CaseResult gdr = sample::latency_case(Path::gdr, 8, {40});
  gdr.test_case.memory = MemoryKind::cuda;
  const Points points(with({gdr, sample::latency_case(Path::rdma_wire, 8, {30})}));
  ASSERT_EQ(points.all().size(), 1U);
  EXPECT_EQ(points.at(points.all()[0], Path::rdma_wire).size(), 1U);
}

TEST(Comparison, pairs_of_nic_and_gpu_and_how_many_worked_at_once_keep_cases_apart) {
  const auto of_pair = [](Path path, const char* pair, std::uint32_t at_once, double rate) {
    CaseResult result = sample::bandwidth_case(path, 4096, {rate});
    result.test_case.pair = pair;
    result.test_case.pairs_at_once = at_once;
    return result;
  };
  const auto comparison =
      compare(with({of_pair(Path::rdma, "mlx5_0:gpu0", 1, 1e9), of_pair(Path::rdma, "mlx5_1:gpu1", 1, 2e9),
                    of_pair(Path::gdr, "mlx5_0:gpu0", 1, 3e9), of_pair(Path::gdr, "mlx5_1:gpu1", 2, 4e9)}));
  ASSERT_EQ(comparison.points.size(), 2U);  // bytes per second, CPU
  EXPECT_EQ(comparison.points[0].point.pair, "mlx5_0:gpu0");
  EXPECT_NEAR(find(comparison, "bytes_per_second", Path::gdr, Path::rdma)->value.estimate, 3, 1e-12);
}

TEST(Crossover, is_the_size_from_which_on_the_path_wins_at_all_larger_ones) {
  // Larger is better: gdr wins at 1k, loses at 4k, wins from 16k on; the order of the cases does not matter.
  const auto comparison = compare(with(
      {sample::bandwidth_case(Path::rdma, 65536, {1e9}), sample::bandwidth_case(Path::gdr, 65536, {2e9}),
       sample::bandwidth_case(Path::rdma, 1024, {1e9}), sample::bandwidth_case(Path::gdr, 1024, {2e9}),
       sample::bandwidth_case(Path::rdma, 4096, {1e9}), sample::bandwidth_case(Path::gdr, 4096, {0.5e9}),
       sample::bandwidth_case(Path::rdma, 16384, {1e9}), sample::bandwidth_case(Path::gdr, 16384, {1.5e9})}));
  const Crossover* crossover = find_crossover(comparison, "bytes_per_second", Path::gdr, Path::rdma);
  ASSERT_NE(crossover, nullptr);
  EXPECT_EQ(crossover->from_bytes, 16384U);
}

TEST(Crossover, is_none_when_the_path_loses_at_the_largest_size) {
  // Smaller is better.
  const auto comparison = compare(
      with({sample::latency_case(Path::rdma, 8, {10}), sample::latency_case(Path::gdr, 8, {5}),
            sample::latency_case(Path::rdma, 4096, {10}), sample::latency_case(Path::gdr, 4096, {11})}));
  const Crossover* crossover = find_crossover(comparison, "latency_p50_us", Path::gdr, Path::rdma);
  ASSERT_NE(crossover, nullptr);
  EXPECT_EQ(crossover->from_bytes, std::nullopt);
}

TEST(Crossover, a_difference_within_the_noise_is_no_win) {
  const auto comparison = compare(with({sample::latency_case(Path::rdma, 8, {10, 10, 10}),
                                        sample::latency_case(Path::gdr, 8, {5, 12, 10}),
                                        sample::latency_case(Path::rdma, 64, {10, 10, 10}),
                                        sample::latency_case(Path::gdr, 64, {5, 5.1, 5.2})}));
  const Crossover* crossover = find_crossover(comparison, "latency_p50_us", Path::gdr, Path::rdma);
  ASSERT_NE(crossover, nullptr);
  EXPECT_EQ(crossover->from_bytes, 64U);
}

TEST(Figures, bandwidth_of_both_directions_counts_the_messages_of_both) {
  CaseResult result = sample::bandwidth_case(Path::rdma, 4096, {});
  result.test_case.direction = Direction::both;
  const RunResult run = sample::bandwidth_run(result.test_case, 4096e6, 1);
  const Figures seen = figures(result.test_case, run);
  EXPECT_NEAR(*seen.messages_per_second, 1e6, 1);
  EXPECT_NEAR(*seen.bytes_per_second, 4096e6, 1);
  EXPECT_FALSE(seen.latency_us);
}

TEST(Figures, cpu_is_percent_of_one_core_and_seconds_per_decimal_gigabyte) {
  const CaseResult result = sample::bandwidth_case(Path::rdma, 4096, {2e9}, 1);  // 4 GB in 2 s, 1 s of CPU
  const Figures seen = figures(result)[0];
  EXPECT_NEAR(*seen.cpu.at(0).user_pct, 12.5, 1e-9);
  EXPECT_NEAR(*seen.cpu.at(0).system_pct, 37.5, 1e-9);
  EXPECT_NEAR(*seen.cpu.at(0).thread_pct, 25, 1e-9);
  EXPECT_NEAR(*seen.cpu.at(0).softirq_pct, 25, 1e-9);
  EXPECT_NEAR(*seen.cpu.at(0).irq_pct, 1, 1e-9);
  EXPECT_NEAR(*seen.cpu.at(0).seconds_per_gb, 0.25, 1e-9);
  EXPECT_NEAR(*seen.cpu.at(0).irq_seconds_per_gb, 0.13, 1e-9);
  EXPECT_NEAR(*seen.cpu_seconds_per_gb(), 0.5, 1e-9);
}

TEST(Figures, what_no_time_or_payload_was_spent_on_is_absent_and_not_zero) {
  Case bandwidth;
  bandwidth.suite = Suite::bandwidth;
  RunResult nothing;
  nothing.ranks.resize(2);
  const Figures seen = figures(bandwidth, nothing);
  EXPECT_FALSE(seen.bytes_per_second);
  EXPECT_FALSE(seen.messages_per_second);
  EXPECT_FALSE(seen.cpu.at(0).user_pct);
  EXPECT_FALSE(seen.cpu_seconds_per_gb());
  EXPECT_FALSE(seen.cpu_pct());
}

TEST(Comparison, holds_the_p2p_path_against_those_through_a_nic) {
  const auto comparison = compare(
      with({sample::bandwidth_case(Path::tcp, 4096, {1e9}), sample::bandwidth_case(Path::gdr, 4096, {4e9}),
            sample::bandwidth_case(Path::p2p, 4096, {8e9})}));
  EXPECT_NEAR(find(comparison, "bytes_per_second", Path::p2p, Path::gdr)->value.estimate, 2, 1e-12);
  EXPECT_NEAR(find(comparison, "bytes_per_second", Path::p2p, Path::tcp)->value.estimate, 8, 1e-12);
  EXPECT_EQ(find(comparison, "bytes_per_second", Path::p2p, Path::rdma), nullptr);
}

}  // namespace
}  // namespace gdrbench::report
