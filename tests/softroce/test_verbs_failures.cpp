#include <gmock/gmock.h>

#include "measure/runner.hpp"
#include "two_wires.hpp"

namespace gdrbench::wire {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Numbers of enum ibv_wc_status.
enum : std::uint32_t {
  length_error = 1,
  local_operation_error = 2,
  flushed = 5,
  invalid_request = 9,
  access_error = 10,
  operation_error = 11,
  retries_exceeded = 12,
  rnr_retries_exceeded = 13
};

class VerbsFailure : public NeedsRdma {};

TEST_F(VerbsFailure, of_a_wrong_rkey_is_an_access_error_and_later_requests_are_flushed) {
  for (const Op op : {Op::write, Op::write_imm, Op::read}) {
    SCOPED_TRACE(to_string(op));
    const Pair pair;
    ASSERT_EQ(pair.right.wire.post_receive(pair.right.receive(7, 0, 8)), 0);
    SendRequest request = pair.left.one_sided(op, 1, pair.right, 0, 8);
    request.rkey ^= 0x5500;
    // rdma_rxe flushes those receives only that were there when the error came.
    ASSERT_EQ(pair.left.wire.post_receive(pair.left.receive(2, 0, 8)), 0);
    ASSERT_EQ(pair.left.wire.post_send(request), 0);
    const std::vector<Completion> failed = pair.left.take(1);
    ASSERT_EQ(failed.size(), 1);
    EXPECT_EQ(failed[0].status, access_error);
    EXPECT_EQ(failed[0].id, 1);
    EXPECT_EQ(failed[0].kind, Completion::Kind::sent);

    for (const std::uint64_t id : {3, 4})
      ASSERT_EQ(pair.left.wire.post_send(pair.left.one_sided(Op::write, id, pair.right, 0, 8)), 0);
    EXPECT_THAT(pair.left.statuses(3), ElementsAre(flushed, flushed, flushed));
  }
}

TEST_F(VerbsFailure, of_a_range_past_the_region_is_an_access_error_that_changes_nothing) {
  for (const Op op : {Op::write, Op::read}) {
    SCOPED_TRACE(to_string(op));
    const Pair pair;
    const End& target = op == Op::write ? pair.right : pair.left;
    fill_pattern(target.memory, {.length = target.memory.size(), .seed = 1});
    SendRequest request = pair.left.one_sided(op, 1, pair.right, 0, 64);
    request.remote_address += pair.right.memory.size() - 63;
    ASSERT_EQ(pair.left.wire.post_send(request), 0);
    EXPECT_THAT(pair.left.statuses(1), ElementsAre(access_error));
    EXPECT_FALSE(find_mismatch(target.memory, {.length = target.memory.size(), .seed = 1}));
  }
}

TEST_F(VerbsFailure, of_a_receive_that_is_too_short_shows_at_both_ends) {
  const Pair pair;
  ASSERT_EQ(pair.right.wire.post_receive(pair.right.receive(1, 0, 64)), 0);
  ASSERT_EQ(pair.left.wire.post_send(pair.left.send(2, 0, 65)), 0);
  // rdma_rxe takes the receive for a malformed one.
  const bool rxe = pair.left.wire.device().info().fabric == FabricKind::soft_roce;
  EXPECT_THAT(pair.left.statuses(1), ElementsAre(rxe ? operation_error : invalid_request));
  EXPECT_THAT(pair.right.statuses(1), ElementsAre(rxe ? local_operation_error : length_error));
}

TEST_F(VerbsFailure, of_a_send_that_finds_no_receive_is_rnr_where_retries_are_off) {
  EndSettings settings;
  settings.verbs.rnr_retry = 0;
  const Pair pair(settings);
  ASSERT_EQ(pair.left.wire.post_send(pair.left.send(1, 0, 8)), 0);
  EXPECT_THAT(pair.left.statuses(1), ElementsAre(rnr_retries_exceeded));
}

TEST_F(VerbsFailure, of_a_vanished_peer_is_found_by_retries) {
  EndSettings settings;
  settings.verbs.timeout = 10;  // 4 ms
  settings.verbs.retry_count = 1;
  End survivor(settings);
  {
    End peer(settings);
    survivor.wire.connect(peer.wire.offer(), {});
    peer.wire.connect(survivor.wire.offer(), {});
  }
  for (const std::uint64_t id : {1, 2}) ASSERT_EQ(survivor.wire.post_send(survivor.send(id, 0, 8)), 0);
  EXPECT_THAT(survivor.statuses(2), ElementsAre(retries_exceeded, flushed));
}

TEST_F(VerbsFailure, of_one_queue_pair_leaves_the_others_usable) {
  const Pair pair(EndSettings{.limits = {.queue_pairs = 2}});
  SendRequest bad = pair.left.one_sided(Op::write, 1, pair.right, 0, 8);
  bad.rkey ^= 0x5500;
  ASSERT_EQ(pair.left.wire.post_send(bad), 0);
  ASSERT_THAT(pair.left.statuses(1), ElementsAre(access_error));
  SendRequest good = pair.left.one_sided(Op::write, 2, pair.right, 0, 8);
  good.queue_pair = 1;
  ASSERT_EQ(pair.left.wire.post_send(good), 0);
  const std::vector<Completion> done = pair.left.take(1);
  ASSERT_EQ(done.size(), 1);
  EXPECT_EQ(done[0].status, 0);
  EXPECT_EQ(done[0].queue_pair, 1);
}

// The path policies, at their own interface: the initiator of a case gets a key that is not the responder's.
class PathFailure : public NeedsRdma, public testing::WithParamInterface<Path> {
 protected:
  // What the initiator's run says of it.
  std::string run_with_wrong_rkey(const Case& c, const char* region) {
    measure::Payload ours, theirs;
    const auto initiator = make_runner(c, measure::Role::initiator, ours);
    const auto responder = make_runner(c, measure::Role::responder, theirs);
    std::vector<measure::RankLink> to_responder(2), to_initiator(2);
    to_responder[0].offer = initiator->offer();
    responder->connect(std::move(to_responder));
    nlohmann::json offer = responder->offer();
    nlohmann::json& key = offer.at("path").at(region).at("rkey");
    key = key.get<std::uint32_t>() ^ 0x5500;
    to_initiator[1].offer = offer;
    initiator->connect(std::move(to_initiator));
    const RunRequest request{.iterations = 64, .warmup = 0, .seed = 1};
    responder->prepare(request);
    initiator->prepare(request);
    measure::Watch watch(-1, 10s);
    return error_text<Error>([&] { initiator->run(watch); });
  }
};

TEST_P(PathFailure, is_reported_by_its_cause_and_not_by_the_flushes_that_follow) {
  const Case c{.suite = Suite::bandwidth,
               .path = GetParam(),
               .op = Op::write,
               .size_bytes = 4096,
               .footprint_bytes = 1 << 16,
               .verbs = verbs_options()};
  const std::string text = run_with_wrong_rkey(c, is_staged(c.path) ? "staging" : "incoming");
  EXPECT_THAT(text, HasSubstr("IBV_WC_REM_ACCESS_ERR (10)"));
  EXPECT_THAT(text, HasSubstr("wrong rkey"));
  EXPECT_THAT(text, Not(HasSubstr("FLUSH")));
}

std::string path_name(const testing::TestParamInfo<Path>& info) {
  return std::string(to_string(info.param));
}
INSTANTIATE_TEST_SUITE_P(Paths, PathFailure, testing::Values(Path::gdr, Path::rdma), path_name);

}  // namespace
}  // namespace gdrbench::wire
