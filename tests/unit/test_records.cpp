#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "base/records.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

// No field has its default, so that one forgotten on either way is seen.
Case unusual_case() {
  Case c;
  c.suite = Suite::overlap;
  c.path = Path::gdr;
  c.op = Op::write_imm;
  c.memory = MemoryKind::cuda_vmm;
  c.completion = CompletionMode::event;
  c.direction = Direction::both;
  c.size_bytes = 4'294'967'297;
  c.depth = 3;
  c.queue_pairs = 5;
  c.footprint_bytes = 12'345;
  c.gpu = 7;
  c.shares_gpu = true;
  c.pair = "mlx5_3:gpu7";
  c.pairs_at_once = 8;
  c.staging = {.variant = Staging::pageable,
               .engine = CopyEngine::kernel,
               .chunk_bytes = 777,
               .slots = 6,
               .streams = 4};
  c.load = Load::memory;
  c.bind = BindBy::none;
  c.tcp_threads = 3;
  c.verbs = {.device = "mlx5_3",
             .gid_index = 3,
             .port = 2,
             .path_mtu = 4096,
             .timeout = 20,
             .retry_count = 1,
             .rnr_retry = 2,
             .min_rnr_timer = 12,
             .service_level = 4,
             .traffic_class = 106,
             .inline_bytes = 64,
             .transport = Transport::uc,
             .connect = ConnectBy::rdma_cm,
             .relaxed_ordering = false,
             .registration = RegisterBy::peermem};
  return c;
}

Case over_the_wire(const Case& c) {
  return case_from_json(json::parse(to_json(c).dump()));
}

std::string refusal(const json& j) {
  try {
    case_from_json(j);
  } catch (const UsageError& fault) {
    return fault.what();
  }
  return "accepted";
}

std::string refusal(const json::json_pointer& where, const json& value) {
  json j = to_json(Case{});
  j[where] = value;
  return refusal(j);
}

TEST(CaseJson, EveryFieldMakesTheRoundTrip) {
  EXPECT_EQ(over_the_wire(unusual_case()), unusual_case());
  EXPECT_EQ(over_the_wire({}), Case{});
}

TEST(CaseJson, EveryFieldIsNeededAndNamedWhenMissing) {
  const json whole = to_json(unusual_case()).flatten();
  EXPECT_EQ(whole.size(), 37);
  for (const auto& [where, value] : whole.items()) {
    json j = to_json(unusual_case());
    const json::json_pointer pointer(where);
    j.at(pointer.parent_pointer()).erase(pointer.back());
    EXPECT_THAT(refusal(j), AllOf(HasSubstr(pointer.back()), HasSubstr("missing")));
  }
}

TEST(CaseJson, EveryFieldIsNamedWhenOfAnotherType) {
  const json whole = to_json(unusual_case()).flatten();
  for (const auto& [where, value] : whole.items()) {
    const json::json_pointer pointer(where);
    EXPECT_THAT(refusal(pointer, json::array({1})), HasSubstr(pointer.back()));
    EXPECT_THAT(refusal(pointer, -1), HasSubstr(pointer.back()));
    EXPECT_THAT(refusal(pointer, 1.5), HasSubstr(pointer.back()));
  }
  EXPECT_THAT(refusal(json::array()), HasSubstr("case"));
  EXPECT_THAT(refusal(json::json_pointer("/verbs"), 3), HasSubstr("case.verbs"));
}

TEST(CaseJson, UnknownNamesAreRefusedWithTheKnownOnes) {
  EXPECT_THAT(refusal(json::json_pointer("/path"), "warp"),
              AllOf(HasSubstr("case.path"), HasSubstr("warp"), HasSubstr("tcp, rdma, gdr")));
}

TEST(CaseJson, NumbersOutOfRangeAreRefused) {
  struct Limit {
    const char* where;
    std::uint64_t min, max;
  };
  const Limit limits[] = {{"/size_bytes", 1, std::uint64_t{1} << 44},
                          {"/depth", 1, 4096},
                          {"/queue_pairs", 1, 1024},
                          {"/footprint_bytes", 0, std::uint64_t{1} << 44},
                          {"/gpu", 0, 1023},
                          {"/pairs_at_once", 1, 64},
                          {"/staging/chunk_bytes", 256, (8 << 20) - 64},
                          {"/verbs/gid_index", 0, 65'535},
                          {"/verbs/port", 1, 254},
                          {"/verbs/path_mtu", 0, 4096},
                          {"/verbs/timeout", 0, 31},
                          {"/verbs/retry_count", 0, 7},
                          {"/verbs/rnr_retry", 0, 7},
                          {"/verbs/min_rnr_timer", 0, 31},
                          {"/verbs/service_level", 0, 15},
                          {"/verbs/traffic_class", 0, 255},
                          {"/verbs/inline_bytes", 0, 65'536}};
  for (const Limit& limit : limits) {
    const json::json_pointer where(limit.where);
    EXPECT_EQ(refusal(where, limit.min), "accepted") << limit.where;
    EXPECT_EQ(refusal(where, limit.max), "accepted") << limit.where;
    EXPECT_THAT(refusal(where, limit.max + 1), HasSubstr(where.back()));
    if (limit.min > 0) {
      EXPECT_THAT(refusal(where, limit.min - 1), HasSubstr(where.back()));
    }
    EXPECT_THAT(refusal(where, std::numeric_limits<std::uint64_t>::max()), HasSubstr(where.back()));
  }
  EXPECT_THAT(refusal(json::json_pointer("/verbs/path_mtu"), 1500), HasSubstr("path_mtu"));
  EXPECT_THAT(refusal(json::json_pointer("/verbs/device"), std::string(65, 'x')), HasSubstr("device"));
}

TEST(CaseJson, SizesWhoseProductWouldOverflowAreRefused) {
  json j = to_json(Case{});
  j["size_bytes"] = std::uint64_t{1} << 44;
  j["depth"] = 4096;
  j["queue_pairs"] = 1024;
  EXPECT_THAT(refusal(j), HasSubstr("case.size_bytes"));
}

TEST(CaseJson, ALongWrongValueIsNotRepeated) {
  EXPECT_LT(refusal(json::json_pointer("/depth"), std::string(100'000, 'x')).size(), 200);
  EXPECT_LT(refusal(json::json_pointer("/path"), std::string(100'000, 'x')).size(), 200);
}

TEST(RunJson, RequestAndResultMakeTheRoundTrip) {
  const RunRequest request = request_from_json(
      json::parse(to_json(RunRequest{.iterations = 5, .warmup = 6, .seed = ~std::uint64_t{0}}).dump()));
  EXPECT_EQ(request.iterations, 5);
  EXPECT_EQ(request.warmup, 6);
  EXPECT_EQ(request.seed, ~std::uint64_t{0});
  EXPECT_THROW(request_from_json({{"iterations", 0}, {"warmup", 0}, {"seed", 0}}), UsageError);

  const RankResult sent{
      .elapsed_s = 0.1,
      .messages_sent = 2,
      .messages_received = 3,
      .cpu = {.elapsed_s = 4, .user_s = 5, .system_s = 6, .thread_s = 7, .irq_s = 8, .softirq_s = 9},
      .latency_us =
          LatencySummary{
              .min = 12, .mean = 13, .p50 = 14, .p90 = 15, .p99 = 16, .p99_9 = 17, .p99_99 = 18, .max = 19},
      .load = LoadRates{.alone_units_per_second = 10, .together_units_per_second = 11},
      .samples_ns = {1}};
  const RankResult got = rank_result_from_json(json::parse(to_json(sent).dump()));
  EXPECT_EQ(got.elapsed_s, 0.1);
  EXPECT_EQ(got.messages_sent, 2);
  EXPECT_EQ(got.messages_received, 3);
  EXPECT_EQ(got.cpu.elapsed_s, 4);
  EXPECT_EQ(got.cpu.user_s, 5);
  EXPECT_EQ(got.cpu.system_s, 6);
  EXPECT_EQ(got.cpu.thread_s, 7);
  EXPECT_EQ(got.cpu.irq_s, 8);
  EXPECT_EQ(got.cpu.softirq_s, 9);
  EXPECT_TRUE(got.samples_ns.empty()) << "they stay where they were taken";
  ASSERT_TRUE(got.latency_us);
  EXPECT_EQ(got.latency_us->min, 12);
  EXPECT_EQ(got.latency_us->p99_9, 17);
  EXPECT_EQ(got.latency_us->max, 19);
  EXPECT_EQ(got.load, sent.load);
  EXPECT_EQ(rank_result_from_json(to_json(RankResult{})).load, std::nullopt);
}

TEST(RunJson, RatesOfALoadThatNoMachineReachesAreRefused) {
  const json whole = to_json(RankResult{.load = LoadRates{1, 1}});
  for (const char* where : {"/load/alone_units_per_second", "/load/together_units_per_second"})
    for (const double wrong : {-1.0, 1e19, std::numeric_limits<double>::infinity()}) {
      json j = whole;
      j[json::json_pointer(where)] = wrong;
      EXPECT_THROW(rank_result_from_json(j), UsageError) << where << " = " << wrong;
    }
}

TEST(RunJson, SecondsThatNoClockCountsAreRefused) {
  const json whole = to_json(RankResult{});
  EXPECT_NO_THROW(rank_result_from_json(whole));
  for (const char* where : {"/elapsed_s", "/cpu/elapsed_s", "/cpu/user_s", "/cpu/system_s", "/cpu/thread_s",
                            "/cpu/irq_s", "/cpu/softirq_s"}) {
    for (const double wrong : {-5.0, 1e308, 1.1e9, std::numeric_limits<double>::infinity()}) {
      json j = whole;
      j[json::json_pointer(where)] = wrong;
      EXPECT_THROW(rank_result_from_json(j), UsageError) << where << " = " << wrong;
    }
  }
  for (const char* where : {"/elapsed_s", "/cpu/elapsed_s"}) {
    json j = whole;
    j[json::json_pointer(where)] = 1e-320;
    EXPECT_THROW(rank_result_from_json(j), UsageError) << where;
  }
}

}  // namespace
}  // namespace gdrbench
