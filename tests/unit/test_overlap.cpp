#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../fixtures/sample_result.hpp"
#include "report/losses.hpp"

namespace gdrbench::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// The work of the initiator gets 5 % slower, that of the responder 20 %.
CaseResult overlap_case(Path path, Load load, const std::vector<double>& rates) {
  CaseResult result = sample::bandwidth_case(path, 1 << 20, rates);
  result.test_case.suite = Suite::overlap;
  result.test_case.load = load;
  if (load == Load::none) return result;
  for (RunResult& run : result.repetitions) {
    run.ranks[0].load = LoadRates{.alone_units_per_second = 1000, .together_units_per_second = 950};
    run.ranks[1].load = LoadRates{.alone_units_per_second = 100, .together_units_per_second = 80};
  }
  return result;
}

ResultDocument overlapping() {
  ResultDocument document;
  document.command = "gdrbench overlap node-b";
  document.fabric.kind = FabricKind::hardware;
  document.complete = true;
  document.cases = {overlap_case(Path::tcp, Load::none, {2e9, 2e9, 2e9}),
                    overlap_case(Path::tcp, Load::compute, {1e9, 1e9, 1e9}),
                    overlap_case(Path::tcp, Load::memory, {1.5e9, 1.5e9, 1.5e9}),
                    overlap_case(Path::gdr, Load::none, {10e9, 10e9, 10e9}),
                    overlap_case(Path::gdr, Load::compute, {10e9, 10e9, 10e9})};
  return document;
}

TEST(Loss, of_work_is_a_percentage_of_what_it_did_alone) {
  EXPECT_NEAR(work_loss_pct({.alone_units_per_second = 200, .together_units_per_second = 150}).value(), 25,
              1e-9);
  EXPECT_NEAR(work_loss_pct({.alone_units_per_second = 200, .together_units_per_second = 220}).value(), -10,
              1e-9);
  EXPECT_NEAR(work_loss_pct({.alone_units_per_second = 200, .together_units_per_second = 0}).value(), 100,
              1e-9);
  EXPECT_EQ(work_loss_pct({.alone_units_per_second = 0, .together_units_per_second = 1}), std::nullopt);
}

TEST(Loss, of_a_transfer_pairs_repetitions_that_ran_side_by_side) {
  const auto alone = figures(overlap_case(Path::tcp, Load::none, {2e9, 4e9}));
  const auto together = figures(overlap_case(Path::tcp, Load::compute, {1e9, 2e9}));
  EXPECT_NEAR(transfer_loss_pct(alone, together).value(), 50, 1e-9);
  EXPECT_EQ(transfer_loss_pct(alone, {}), std::nullopt);
}

TEST(OverlapTable, shows_what_the_transfer_and_the_work_lose_with_each_load) {
  EXPECT_THAT(suite_table(overlapping(), {.title = "gdrbench overlap node-b"}), HasSubstr(R"(
overlap                  size  rate alone  + compute  loss %  GPU work loss %   + memory  loss %  GPU work loss %
tcp      write forward  1 MiB   2.00 GB/s  1.00 GB/s    50.0       5.0 + 20.0  1.50 GB/s    25.0       5.0 + 20.0
gdr      write forward  1 MiB   10.0 GB/s  10.0 GB/s     0.0       5.0 + 20.0          –       –                –
)"));
}

TEST(OverlapTable, shows_the_rate_alone_where_nothing_else_was_measured) {
  ResultDocument document = overlapping();
  document.cases = {overlap_case(Path::tcp, Load::none, {2e9})};
  EXPECT_THAT(suite_table(document, {}), HasSubstr(R"(
overlap                  size  rate alone
tcp      write forward  1 MiB   2.00 GB/s
)"));
}

TEST(OverlapTable, explains_its_losses_and_no_column_of_other_tables) {
  ResultDocument document = overlapping();
  std::string table = suite_table(document, {});
  EXPECT_THAT(table, HasSubstr("loss %: a geometric mean over pairs of repetitions"));
  EXPECT_THAT(table, HasSubstr("GPU work loss: initiator + responder"));
  for (const char* other : {"CPU", "of one core", "min and max", "ratios"})
    EXPECT_THAT(table, Not(HasSubstr(other)));
  document.cases = {overlap_case(Path::tcp, Load::none, {2e9})};
  table = suite_table(document, {});
  EXPECT_THAT(table, HasSubstr("Medians of the repetitions.\n"));
  EXPECT_THAT(table, Not(HasSubstr("loss")));
}

TEST(OverlapTable, is_left_out_without_cases_of_its_suite) {
  EXPECT_EQ(overlap_block(sample::three_paths(), Suite::overlap, {}), "");
}

TEST(OverlapResult, keeps_the_rates_and_losses_of_both_ends_of_every_repetition) {
  const auto cases = to_json(overlapping()).at("gdrbench").at("cases");
  EXPECT_EQ(cases.at(0).at("load"), "none");
  EXPECT_TRUE(cases.at(0).at("repetitions").at(0).at("load").is_null());
  EXPECT_EQ(cases.at(1).at("load"), "compute");
  const auto& load = cases.at(1).at("repetitions").at(2).at("load");
  EXPECT_EQ(load.size(), 2U);
  EXPECT_EQ(load.at(0).at("alone_units_per_second"), 1000);
  EXPECT_EQ(load.at(0).at("together_units_per_second"), 950);
  EXPECT_NEAR(load.at(0).at("loss_pct").get<double>(), 5, 1e-9);
  EXPECT_NEAR(load.at(1).at("loss_pct").get<double>(), 20, 1e-9);
}

TEST(OverlapResult, compares_paths_under_the_same_load_only) {
  const auto points = to_json(overlapping()).at("gdrbench").at("comparison").at("points");
  for (const auto& point : points) {
    EXPECT_NE(point.at("load"), "memory") << "gdr was not measured with it";
    ASSERT_EQ(point.at("ratios").size(), 1U);
    EXPECT_EQ(point.at("ratios").at(0).at("path"), "gdr");
    EXPECT_EQ(point.at("ratios").at(0).at("reference"), "tcp");
    if (point.at("metric") != "bytes_per_second") continue;
    const double expected = point.at("load") == "none" ? 5 : 10;
    EXPECT_NEAR(point.at("ratios").at(0).at("estimate").get<double>(), expected, 1e-9);
  }
  EXPECT_EQ(points.size(), 4U) << "rate and CPU cost, with and without a load";
}

TEST(Tables, send_nobody_to_events_who_must_poll) {
  ResultDocument document = sample::three_paths();
  document.cases = {document.cases[0]};
  for (RunResult& run : document.cases[0].repetitions)
    run.ranks[1].cpu.user_s = run.ranks[1].cpu.system_s = 0.01;
  EXPECT_THAT(suite_table(document, {}), HasSubstr("try --completion event"));
  document.cases[0].test_case.suite = Suite::visible;
  const std::string table = suite_table(document, {});
  EXPECT_THAT(table, HasSubstr("a polling end had only"));
  EXPECT_THAT(table, Not(HasSubstr("--completion event")));
}

TEST(Tables, say_when_the_kernels_of_both_ends_shared_a_gpu) {
  ResultDocument document = overlapping();
  const auto observed_by = [](const std::string& gpu) {
    PathProof proof;
    proof.observer = {.kind = "gpu kernel", .gpu_uuid = gpu};
    return proof;
  };
  const auto loaded = [](const std::string& gpu) {
    PathProof proof;
    proof.load = {.kind = Load::compute, .blocks = 1, .gpu_uuid = gpu};
    return proof;
  };
  const auto run_on = [&](const std::string& initiator, const std::string& responder, auto proof_of) {
    document.cases[1].proofs = {proof_of(initiator), proof_of(responder)};
    return suite_table(document, {});
  };
  EXPECT_THAT(suite_table(document, {}), Not(HasSubstr("one GPU")));
  EXPECT_THAT(run_on("GPU-1", "GPU-2", loaded), Not(HasSubstr("one GPU")));
  EXPECT_THAT(run_on("GPU-1", "GPU-1", loaded), HasSubstr("on one GPU, GPU-1,"));
  EXPECT_THAT(run_on("GPU-1", "GPU-1", observed_by), HasSubstr("on one GPU, GPU-1,"));
  EXPECT_THAT(run_on("", "", observed_by), Not(HasSubstr("one GPU")));
}

}  // namespace
}  // namespace gdrbench::report
