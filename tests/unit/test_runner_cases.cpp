#include <gtest/gtest.h>

#include "path/layout.hpp"
#include "two_ends.hpp"

namespace gdrbench::measure {
namespace {

std::string test_name(const testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  std::string name = std::string(to_string(c.suite)) + "_" + std::string(to_string(c.path)) + "_" +
                     std::string(to_string(c.op)) + "_" + std::to_string(c.size_bytes) + "_" +
                     std::string(to_string(c.direction)) + "_" + std::string(to_string(c.completion)) + "_" +
                     std::string(to_string(c.staging.variant)) + "_" + std::to_string(c.queue_pairs) +
                     "queue_pairs" + (c.tcp_threads ? "_" + std::to_string(*c.tcp_threads) + "threads" : "");
  return name;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Path path : {Path::tcp, Path::tcp_wire})
    for (const Op op : {Op::send, Op::write, Op::write_imm, Op::read})
      for (const Suite suite : {Suite::latency, Suite::bandwidth, Suite::visible})
        for (const CompletionMode completion : {CompletionMode::poll, CompletionMode::event}) {
          if (op == Op::write && completion == CompletionMode::event) continue;  // refused, see below
          if (suite == Suite::visible && (op == Op::read || completion == CompletionMode::event)) continue;
          for (const std::uint64_t size : {1ULL, 1025ULL, (1ULL << 20) + 1}) {
            Case c{.suite = suite,
                   .path = path,
                   .op = op,
                   .completion = completion,
                   .size_bytes = size,
                   .footprint_bytes = 4 << 20};
            if (times_messages(suite)) {
              all.push_back(c);
              continue;
            }
            for (const Direction direction : {Direction::forward, Direction::reverse, Direction::both}) {
              c.direction = direction;
              c.queue_pairs = size == 1025 ? 3 : 1;
              c.staging.variant = size == 1 ? Staging::plain : Staging::pipelined;
              all.push_back(c);
            }
          }
        }
  return all;
}

class RunnerCase : public testing::TestWithParam<Case> {};

TEST_P(RunnerCase, moves_every_byte_in_repeated_runs) {
  const Case& c = GetParam();
  TwoEnds ends(c);
  std::uint64_t seed = 7;
  for (const std::uint64_t iterations : {1, 37, 5}) {
    const RankResult result = ends.run({.iterations = iterations, .warmup = 3, .seed = ++seed});
    EXPECT_EQ(ends.faults(), "");
    EXPECT_EQ(result.samples_ns.size(), times_messages(c.suite) ? iterations : 0);
    EXPECT_GT(result.elapsed_s, 0);
    // Timed where chunks stream: only the stages that this end has take time, and none more than all.
    ASSERT_EQ(result.stages.has_value(), is_staged(c.path) && !times_messages(c.suite));
    if (!result.stages) continue;
    const path::Flow flow = path::flow_of(c, true);
    EXPECT_EQ(result.stages->gpu_to_host_s > 0, path::needs_outgoing(c, flow));
    EXPECT_EQ(result.stages->wire_s > 0, flow.posts);
    EXPECT_EQ(result.stages->host_to_gpu_s > 0, path::needs_incoming(c, flow));
    for (const double stage_s :
         {result.stages->gpu_to_host_s, result.stages->wire_s, result.stages->host_to_gpu_s})
      EXPECT_LE(stage_s, result.elapsed_s * 1.001 + 1e-4);
  }
}
INSTANTIATE_TEST_SUITE_P(Tcp, RunnerCase, testing::ValuesIn(cases()), test_name);

std::vector<Case> cases_with_threads() {
  std::vector<Case> some;
  for (Case c : cases()) {
    if (times_messages(c.suite) || c.direction == Direction::reverse || c.size_bytes == 1) continue;
    c.queue_pairs = 3;
    c.tcp_threads = c.direction == Direction::both ? 3 : 2;
    some.push_back(c);
  }
  return some;
}
INSTANTIATE_TEST_SUITE_P(TcpThreads, RunnerCase, testing::ValuesIn(cases_with_threads()), test_name);

}  // namespace
}  // namespace gdrbench::measure
