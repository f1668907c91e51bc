#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "../fixtures/sample_result.hpp"
#include "report/text_table.hpp"

namespace gdrbench::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const TableOptions options = {
    .title = "gdrbench compare node-b", .remote = "node-b", .result_file = "out.json", .optimised = true};

PathProof proof_of(int gpu, const char* device, std::optional<PciDistance> distance) {
  PathProof proof;
  proof.gpu = gpu;
  proof.gpu_nic_distance = distance;
  proof.verbs.emplace().device = device;
  return proof;
}

PathProof bound_to(const char* cores, const char* why) {
  PathProof proof;
  proof.binding = {.cores = cores, .why = why};
  return proof;
}

TEST(ComparisonTable, names_the_distance_of_gpu_and_nic_in_its_head) {
  ResultDocument document = sample::three_paths();
  for (CaseResult& result : document.cases)
    if (result.test_case.path == Path::gdr)
      result.proofs = {proof_of(2, "mlx5_0", PciDistance::pix), proof_of(0, "mlx5_1", std::nullopt)};
  const std::string table = comparison_table(document, {.title = "gdrbench compare", .width = 300});
  const std::string head = table.substr(0, table.find('\n'));
  EXPECT_NE(head.find("GPU 2 ↔ mlx5_0 PIX"), std::string::npos) << head;
  EXPECT_NE(head.find("remote GPU 0 ↔ mlx5_1 UNKNOWN"), std::string::npos) << head;
}

TEST(ComparisonTable, names_the_cores_of_an_end_in_its_head_and_why_one_is_not_bound_below) {
  ResultDocument document = sample::three_paths();
  for (CaseResult& result : document.cases)
    result.proofs = {bound_to("0-15", "next to mlx5_0 and GPU 2"),
                     bound_to("0-31", "not bound: all cores are equally near")};
  std::string table = comparison_table(document, {.title = "gdrbench compare", .width = 300});
  EXPECT_THAT(table.substr(0, table.find('\n')), HasSubstr(" · cores 0-15"));
  EXPECT_THAT(table.substr(0, table.find('\n')), Not(HasSubstr("0-31")));
  EXPECT_THAT(table, HasSubstr("not bound to cores: responder: all cores are equally near\n"));
  for (CaseResult& result : document.cases) result.proofs[0] = result.proofs[1];
  table = comparison_table(document, {.title = "gdrbench compare", .width = 300});
  EXPECT_THAT(table, HasSubstr("not bound to cores: all cores are equally near\n"));
}

TEST(ComparisonTable, takes_no_word_of_the_other_end_on_trust) {
  ResultDocument document = sample::three_paths();
  PathProof odd = proof_of(0, "\x1b[2J", std::nullopt);
  for (const char* why : {"next to \x1b[2J", "not bound: \x1b[2J"}) {
    odd.binding = {.cores = "\x1b[2J", .why = why};
    for (CaseResult& result : document.cases) result.proofs = {PathProof{}, odd};
    EXPECT_THAT(comparison_table(document, options), Not(HasSubstr("\x1b")));
    EXPECT_THAT(suite_table(document, options), Not(HasSubstr("\x1b")));
  }
}

TEST(ComparisonTable, shows_paths_side_by_side_with_ratio_marks_and_file) {
  EXPECT_EQ(comparison_table(sample::three_paths(), options),
            R"(gdrbench compare node-b      fabric soft-roce rxe0 (functional, not a performance result)
  memory host · completion poll · remote node-b

                                                   tcp           rdma            gdr  gdr ÷ rdma [95 %]
latency 8 B send               p50             41.0 µs        31.0 µs        28.5 µs  0.91 [0.89, 0.93]
                               p99             81.2 µs        61.4 µs        56.4 µs  0.91 [0.89, 0.93]
                               CPU %         100 + 100      100 + 100      100 + 100  1.00 [1.00, 1.00]
bandwidth 4 MiB write forward  rate          1.10 GB/s      2.10 GB/s      3.20 GB/s  1.51 [1.47, 1.54]
                               CPU s/GB  0.909 + 0.909  0.238 + 0.238  0.078 + 0.078  0.33 [0.32, 0.34]

Medians of the repetitions; ratios are geometric means over pairs.
CPU: initiator + responder, user and system time; % is of one core.
3 repetitions · result file out.json
)");
}

TEST(ComparisonTable, has_columns_only_for_paths_that_ran_and_gives_the_reason_for_the_others) {
  ResultDocument document = sample::three_paths();
  std::erase_if(document.cases, [](const CaseResult& result) { return result.test_case.path == Path::gdr; });
  document.skipped = {
      {Path::gdr,
       "ibv_reg_mr of GPU memory: EFAULT (Bad address); nvidia_peermem is not loaded and the RDMA "
       "side lacks dma-buf: load it with modprobe nvidia_peermem"}};
  const std::string table = comparison_table(document, options);
  EXPECT_THAT(table, HasSubstr("rdma ÷ tcp [95 %]\n"));
  EXPECT_THAT(table, HasSubstr("0.76 [0.68, 0.86]\n"));
  EXPECT_THAT(
      table,
      HasSubstr(
          R"(gdr skipped: ibv_reg_mr of GPU memory: EFAULT (Bad address); nvidia_peermem is not loaded and the
             RDMA side lacks dma-buf: load it with modprobe nvidia_peermem
)"));
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 100U) << line;
}

TEST(ComparisonTable, has_no_ratio_column_for_one_path) {
  ResultDocument document = sample::three_paths();
  std::erase_if(document.cases, [](const CaseResult& result) { return result.test_case.path != Path::tcp; });
  EXPECT_THAT(comparison_table(document, options), Not(HasSubstr("÷")));
}

TEST(ComparisonTable, marks_a_point_that_a_path_did_not_reach) {
  ResultDocument document = sample::three_paths();
  document.cases.back().repetitions.clear();
  document.complete = false;
  document.incomplete_reason = "interrupted";
  const std::string table = comparison_table(document, options);
  EXPECT_THAT(table, HasSubstr("2.10 GB/s          –  –\n"));
  EXPECT_THAT(table, HasSubstr("\nincomplete: interrupted\n0 to 3 repetitions · result file out.json\n"));
}

TEST(ComparisonTable, says_so_when_nothing_was_measured) {
  const std::string table =
      comparison_table(ResultDocument{}, {.title = "gdrbench compare x", .optimised = true});
  EXPECT_EQ(table,
            "gdrbench compare x      fabric none (no RDMA figures)\n\nno results\n"
            "incomplete: stopped early\n0 repetitions\n");
}

TEST(ComparisonTable, hardware_is_not_marked_functional_and_shows_where_the_path_wins) {
  ResultDocument document;
  document.fabric.kind = FabricKind::hardware;
  document.fabric.device = "mlx5_0";
  document.complete = true;
  document.cases = {sample::latency_case(Path::rdma, 8, {10}), sample::latency_case(Path::gdr, 8, {11}),
                    sample::latency_case(Path::rdma, 4096, {20}),
                    sample::latency_case(Path::gdr, 4096, {10})};
  const std::string table = comparison_table(document, options);
  EXPECT_THAT(table, Not(HasSubstr("functional")));
  EXPECT_THAT(table, HasSubstr("\ngdr beats rdma: latency send p50 from 4 KiB · latency send p99 from 4 KiB\n"
                               "                latency send CPU % nowhere\n"));
  EXPECT_THAT(table, Not(HasSubstr("depth"))) << "one message at a time is no setting";
  document.fabric.kind = FabricKind::softverbs;
  EXPECT_THAT(comparison_table(document, options), Not(HasSubstr("beats")));
}

TEST(ComparisonTable, names_the_direction_of_bandwidth_alone) {
  ResultDocument document = sample::three_paths();
  CaseResult reverse = sample::bandwidth_case(Path::tcp, 4 << 20, {1e9});
  reverse.test_case.direction = Direction::reverse;
  document.cases.push_back(reverse);
  const std::string table = comparison_table(document, options);
  EXPECT_THAT(table, HasSubstr("bandwidth 4 MiB write forward"));
  EXPECT_THAT(table, HasSubstr("bandwidth 4 MiB write reverse"));
  EXPECT_THAT(table, HasSubstr("latency 8 B send  "));
}

TEST(ComparisonTable, shows_no_interval_that_says_nothing_and_tells_why) {
  ResultDocument document = sample::three_paths();
  const auto unknown = "[–]: an interval wider than a factor of 100 either way";
  EXPECT_THAT(comparison_table(document, options), Not(HasSubstr(unknown)));
  document.cases = {sample::bandwidth_case(Path::rdma, 4096, {1e9, 1e9}),
                    sample::bandwidth_case(Path::gdr, 4096, {1e9, 4e9})};
  const std::string table = comparison_table(document, options);
  EXPECT_THAT(table, HasSubstr("2.50 GB/s  2.00 [–]\n")) << table;
  EXPECT_THAT(table, HasSubstr(unknown));
  EXPECT_THAT(table, HasSubstr("--benchmark_repetitions"));
  EXPECT_GT(to_json(document)["gdrbench"]["comparison"]["points"][0]["ratios"][0]["high"], 1000)
      << "the file keeps it";
}

TEST(Tables, explain_only_the_columns_that_they_have) {
  ResultDocument document = sample::three_paths();
  const auto lone = [&](std::size_t number) {
    ResultDocument one = document;
    one.cases = {document.cases[number]};
    return one;
  };
  const std::string latency = suite_table(lone(0), {}), bandwidth = suite_table(lone(3), {});
  EXPECT_THAT(latency, HasSubstr("min and max are over all"));
  EXPECT_THAT(latency, HasSubstr("% is of one core"));
  EXPECT_THAT(bandwidth, Not(HasSubstr("min and max")));
  EXPECT_THAT(bandwidth, Not(HasSubstr("of one core")));
  EXPECT_THAT(bandwidth, HasSubstr("CPU: initiator + responder"));
  for (const std::string& table : {latency, bandwidth, comparison_table(lone(0), {})})
    EXPECT_THAT(table, Not(HasSubstr("ratios"))) << table;
  EXPECT_THAT(comparison_table(document, {}), Not(HasSubstr("min and max")));
}

TEST(Tables, say_what_the_cases_share_that_is_no_default) {
  ResultDocument document = sample::three_paths();
  EXPECT_THAT(comparison_table(document, options), Not(HasSubstr("depth")));
  for (CaseResult& result : document.cases) result.test_case.depth = 64;
  EXPECT_THAT(comparison_table(document, options), HasSubstr("depth 64"));
}

TEST(Tables, warn_when_a_polling_end_was_not_given_its_core) {
  ResultDocument document = sample::three_paths();
  EXPECT_THAT(comparison_table(document, options), Not(HasSubstr("the machine is busy")));
  for (RunResult& run : document.cases[0].repetitions) {
    run.ranks[1].cpu.user_s = 0.3 * run.ranks[1].cpu.elapsed_s;
    run.ranks[1].cpu.system_s = 0;
  }
  EXPECT_THAT(comparison_table(document, options), HasSubstr("note: a polling end had only 30 % of a core"));
}

TEST(Tables, say_that_a_build_without_optimisation_measures_nothing) {
  const ResultDocument document = sample::three_paths();
  const auto sentence = HasSubstr("built without optimisation (build type");
  for (const auto& table : {comparison_table, suite_table, local_table}) {
    EXPECT_THAT(table(document, {.optimised = false}), sentence);
    EXPECT_THAT(table(document, {.optimised = true}), Not(sentence));
  }
}

CaseResult of_pair(const char* pair, std::uint32_t at_once, const std::vector<double>& rates) {
  CaseResult result = sample::bandwidth_case(Path::gdr, 1 << 20, rates);
  result.test_case.pair = pair;
  result.test_case.pairs_at_once = at_once;
  result.test_case.gpu = pair[6] - '0';
  result.test_case.verbs.device = std::string(pair, 6);
  return result;
}

ResultDocument two_pairs() {
  ResultDocument document;
  document.fabric.kind = FabricKind::hardware;
  document.complete = true;
  document.cases = {of_pair("mlx5_0:gpu0", 1, {10e9, 10e9}), of_pair("mlx5_1:gpu1", 1, {8e9, 8e9}),
                    of_pair("mlx5_0:gpu0", 2, {9e9, 9e9}), of_pair("mlx5_1:gpu1", 2, {4e9, 4e9})};
  return document;
}

TEST(PairsTable, shows_each_pair_alone_and_together_and_their_sums) {
  const char* const block = R"(
bandwidth                  size  pair         rate alone   together  loss %
gdr        write forward  1 MiB  mlx5_0:gpu0   10.0 GB/s  9.00 GB/s    10.0
                                 mlx5_1:gpu1   8.00 GB/s  4.00 GB/s    50.0
                                 sum of 2      18.0 GB/s  13.0 GB/s    27.8
)";
  for (const auto& table : {comparison_table, suite_table}) {
    const std::string text = table(two_pairs(), {.optimised = true});
    EXPECT_THAT(text, HasSubstr(block));
    EXPECT_THAT(text, HasSubstr("together: all pairs at once"));
    EXPECT_THAT(text, HasSubstr("write forward mlx5_1:gpu1 of 2 at once")) << "rows of their own above";
  }
}

TEST(PairsTable, has_no_sum_of_latencies_and_gives_what_they_lose_as_more_time) {
  ResultDocument document = two_pairs();
  document.cases.clear();
  for (const std::uint32_t at_once : {1, 2})
    for (const char* const pair : {"mlx5_0:gpu0", "mlx5_1:gpu1"}) {
      document.cases.push_back(sample::latency_case(Path::gdr, 8, {at_once == 1 ? 10.0 : 12.0}));
      document.cases.back().test_case.pair = pair;
      document.cases.back().test_case.pairs_at_once = at_once;
    }
  const std::string text = suite_table(document, {.optimised = true});
  EXPECT_THAT(text, HasSubstr("mlx5_1:gpu1    5.00 µs   6.00 µs    20.0\n"));
  EXPECT_THAT(text, Not(HasSubstr("sum of")));
}

TEST(PairsTable, is_left_out_where_nothing_ran_at_once_and_marks_what_was_not_measured) {
  ResultDocument document = two_pairs();
  document.cases[1].repetitions.clear();
  EXPECT_THAT(suite_table(document, {}), HasSubstr("mlx5_1:gpu1           –  4.00 GB/s       –\n"));
  document.cases.resize(2);
  EXPECT_THAT(suite_table(document, {}), Not(HasSubstr("rate alone")));
}

TEST(SuiteTable, has_one_row_a_case_with_percentiles_or_rates) {
  ResultDocument document;
  document.fabric.kind = FabricKind::hardware;
  document.complete = true;
  document.cases = {sample::latency_case(Path::tcp, 8, {1000, 1200, 1100}),
                    sample::latency_case(Path::tcp, 4096, {3000, 3000, 3000}),
                    sample::bandwidth_case(Path::tcp, 65536, {950e6, 900e6, 1000e6})};
  EXPECT_EQ(suite_table(document, {.title = "gdrbench latency node-b", .optimised = true}),
            R"(gdrbench latency node-b      fabric hardware · memory host · completion poll

latency         size      min      p50      p90      p99    p99.9      max      CPU %
tcp      send    8 B  1.00 µs   550 µs   990 µs  1.09 ms  1.10 ms  1.20 ms  100 + 100
tcp      send  4 KiB  3.00 µs  1.50 ms  2.70 ms  2.97 ms  3.00 ms  3.00 ms  100 + 100

bandwidth                   size      rate   Msg/s       CPU s/GB
tcp        write forward  64 KiB  950 MB/s  14.5 k  0.526 + 0.526

Medians of the repetitions; min and max are over all of them.
CPU: initiator + responder, user and system time; % is of one core.
3 repetitions
)");
}

TEST(Units, keep_three_digits_and_the_unit_that_fits) {
  EXPECT_EQ(format_time_us(0.0424), "42.4 ns");
  EXPECT_EQ(format_time_us(0.9994), "999 ns");
  EXPECT_EQ(format_time_us(0.9996), "1.00 µs");
  EXPECT_EQ(format_time_us(41.23), "41.2 µs");
  EXPECT_EQ(format_time_us(999.7), "1.00 ms");
  EXPECT_EQ(format_time_us(2.1e6), "2.10 s");
  EXPECT_EQ(format_rate(48.94e9), "48.9 GB/s");
  EXPECT_EQ(format_rate(3.2e6), "3.20 MB/s");
  EXPECT_EQ(format_rate(0), "0.00 B/s");
  EXPECT_EQ(format_count(1254), "1.25 k");
  EXPECT_EQ(format_number(0.0424), "0.042");
  EXPECT_EQ(format_number(0.00002), "2.0e-05");
  EXPECT_EQ(format_number(99.96), "100");
  EXPECT_EQ(format_number(std::nullopt), "–");
  EXPECT_EQ(format_ratio(0.9), "0.90");
  EXPECT_EQ(format_ratio(0.0123), "0.012");
}

TEST(TextTable, aligns_by_characters_and_not_by_bytes) {
  const Row rows[] = {{"µs ÷", "1"}, {"abcd", "22"}};
  const Align alignment[] = {Align::left, Align::right};
  EXPECT_EQ(align_rows(rows, alignment), "µs ÷   1\nabcd  22\n");
}

TEST(TextTable, wraps_between_pieces_and_indents_what_follows) {
  const std::vector<std::string> pieces = words("one two  three four");
  EXPECT_EQ(wrap("say: ", pieces, {.indent = 5, .width = 14}), "say: one two\n     three\n     four\n");
  EXPECT_EQ(wrap("", words("incomprehensibilities a"), {.width = 10}), "incomprehensibilities\na\n");
}

}  // namespace
}  // namespace gdrbench::report
