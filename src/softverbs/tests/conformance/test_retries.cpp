#include <gmock/gmock.h>

#include <algorithm>

#include "end.hpp"

namespace gdrbench::conformance {
namespace {

using testing::ElementsAre;

class Retries : public Conformance {
 protected:
  static constexpr Link impatient{.timeout = 12, .retry_count = 1};  // 17 ms

  static Send message(const Pair& pair, std::uint64_t id, ibv_wr_opcode opcode = IBV_WR_SEND) {
    return {.opcode = opcode,
            .id = id,
            .list = {pair.left.memory.sge(8 * id, 8)},
            .remote = pair.right.memory.remote()};
  }
  // Sends towards a queue pair that does not answer.
  static void expect_exhausted(const End& end) {
    for (const std::uint64_t id : {1, 2})
      ASSERT_EQ(post(end.qp.get(), Send{.id = id, .list = {end.memory.sge(0, 8)}}), 0);
    EXPECT_THAT(outcomes(end.cq.get(), 2),
                ElementsAre(Outcome{1, IBV_WC_RETRY_EXC_ERR}, Outcome{2, IBV_WC_WR_FLUSH_ERR}));
    EXPECT_EQ(end.state(), IBV_QPS_ERR);
  }
};

TEST_F(Retries, end_at_once_when_none_is_granted_and_no_receive_is_there) {
  for (const ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM}) {
    SCOPED_TRACE(opcode_name(opcode));
    const Pair pair(nic(), Link{.rnr_retry = 0});
    ASSERT_EQ(post(pair.left.qp.get(), message(pair, 1, opcode)), 0);
    ASSERT_EQ(post(pair.left.qp.get(), message(pair, 2, opcode)), 0);
    EXPECT_THAT(outcomes(pair.left.cq.get(), 2),
                ElementsAre(Outcome{1, IBV_WC_RNR_RETRY_EXC_ERR}, Outcome{2, IBV_WC_WR_FLUSH_ERR}));
    EXPECT_EQ(pair.left.state(), IBV_QPS_ERR);
    EXPECT_EQ(pair.right.state(), IBV_QPS_RTS) << "it is the requester that gives up";
  }
}

TEST_F(Retries, end_when_the_granted_number_is_used_up) {
  const Pair pair(nic(), Link{.rnr_retry = 3});
  ASSERT_EQ(post(pair.left.qp.get(), message(pair, 1)), 0);
  EXPECT_THAT(outcomes(pair.left.cq.get(), 1), ElementsAre(Outcome{1, IBV_WC_RNR_RETRY_EXC_ERR}));
}

TEST_F(Retries, without_end_wait_for_the_receive_and_keep_the_order) {
  Pair pair(nic());
  constexpr std::uint64_t count = 6;
  pair.left.memory.fill(0, 8 * count, 1);
  for (std::uint64_t id = 0; id < count; ++id)
    ASSERT_EQ(
        post(pair.left.qp.get(), message(pair, id, id % 2 == 0 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE_WITH_IMM)),
        0);
  for (std::uint64_t id = 0; id < count; ++id) {
    // Another pair's round trip lets time pass, in which nothing may complete here.
    const Pair other(nic());
    ASSERT_EQ(post(other.left.qp.get(), message(other, 0, IBV_WR_RDMA_READ)), 0);
    ASSERT_EQ(outcomes(other.left.cq.get(), 1), successes(0, 1));
    EXPECT_TRUE(is_empty(pair.left.cq.get()));
    EXPECT_TRUE(is_empty(pair.right.cq.get()));
    ASSERT_EQ(post(pair.right.qp.get(), Receive{.id = id, .list = {pair.right.memory.sge(1024 + 8 * id, 8)}}),
              0);
    EXPECT_EQ(outcomes(pair.right.cq.get(), 1), successes(id, 1));
    EXPECT_EQ(outcomes(pair.left.cq.get(), 1), successes(id, 1));
    if (id % 2 == 0) {
      EXPECT_TRUE(
          std::ranges::equal(pair.right.memory.bytes(1024 + 8 * id, 8), pair.left.memory.bytes(8 * id, 8)));
    }
  }
}

TEST_F(Retries, hold_back_what_is_behind_the_message_that_waits) {
  Pair pair(nic());
  pair.left.memory.fill(0, 64, 1);
  ASSERT_EQ(post(pair.left.qp.get(), message(pair, 0)), 0);
  ASSERT_EQ(post(pair.left.qp.get(), message(pair, 1, IBV_WR_RDMA_WRITE)), 0);
  const Pair other(nic());
  ASSERT_EQ(post(other.left.qp.get(), message(other, 0, IBV_WR_RDMA_READ)), 0);
  ASSERT_EQ(outcomes(other.left.cq.get(), 1), successes(0, 1));
  EXPECT_EQ(pair.right.memory.word(0), 0) << "the write overtook the message";
  ASSERT_EQ(post(pair.right.qp.get(), Receive{.list = {pair.right.memory.sge(512, 8)}}), 0);
  EXPECT_EQ(outcomes(pair.left.cq.get(), 2), successes(0, 2));
  EXPECT_EQ(pair.right.memory.word(0), pair.left.memory.word(8));
}

TEST_F(Retries, are_not_needed_for_a_write_without_immediate_data) {
  const Pair pair(nic(), Link{.rnr_retry = 0});
  ASSERT_EQ(post(pair.left.qp.get(), message(pair, 1, IBV_WR_RDMA_WRITE)), 0);
  EXPECT_EQ(outcomes(pair.left.cq.get(), 1), successes(1, 1));
}

TEST_F(Retries, run_out_when_the_remote_is_destroyed) {
  End survivor(nic());
  {
    const End remote(nic());
    connect(survivor, remote, impatient);
    ASSERT_EQ(post(remote.qp.get(), Receive{.list = {remote.memory.sge(0, 8)}}), 0);
    ASSERT_EQ(post(survivor.qp.get(), Send{.list = {survivor.memory.sge(0, 8)}}), 0);
    ASSERT_EQ(outcomes(survivor.cq.get(), 1), successes(0, 1))
        << "the connection must work before it is lost";
  }
  expect_exhausted(survivor);
}

TEST_F(Retries, run_out_when_the_remote_never_was) {
  const End end(nic());
  connect(end, 0xfffff0, impatient);
  expect_exhausted(end);
}

TEST_F(Retries, run_out_when_the_remote_has_left_its_state) {
  for (const ibv_qp_state state : {IBV_QPS_ERR, IBV_QPS_RESET}) {
    SCOPED_TRACE(state);
    const Pair pair(nic(), impatient);
    ASSERT_EQ(modify(pair.right, to_state(state)), 0);
    expect_exhausted(pair.left);
  }
}

TEST_F(Retries, run_out_when_the_remote_is_connected_elsewhere) {
  const Pair pair(nic());
  const End client(nic());
  Link link = impatient;
  link.psn = 0x400000;  // packets do not name their sender, so only this tells it from the remote
  connect(client, pair.right.number(), link);
  ASSERT_EQ(post(pair.right.qp.get(), Receive{.list = {pair.right.memory.sge(0, 8)}}), 0);
  expect_exhausted(client);
  EXPECT_TRUE(is_empty(pair.right.cq.get()));
  // The remote itself is unharmed.
  ASSERT_EQ(post(pair.left.qp.get(), message(pair, 0)), 0);
  EXPECT_EQ(outcomes(pair.left.cq.get(), 1), successes(0, 1));
}

}  // namespace
}  // namespace gdrbench::conformance
