#include <gmock/gmock.h>

#include "departures.hpp"
#include "end.hpp"

namespace gdrbench::conformance {
namespace {

using testing::ElementsAre;

class Flush : public Conformance {
 protected:
  // Sends that nothing answers, for no receive is there: they wait at the left.
  static void post_waiting(const Pair& pair, std::uint64_t first, unsigned count, unsigned flags) {
    for (std::uint64_t id = first; id < first + count; ++id)
      ASSERT_EQ(
          post(pair.left.qp.get(), Send{.id = id, .list = {pair.left.memory.sge(0, 8)}, .flags = flags}), 0);
  }
  static void post_receives(const End& end, std::uint64_t first, unsigned count) {
    for (std::uint64_t id = first; id < first + count; ++id)
      ASSERT_EQ(post(end.qp.get(), Receive{.id = id, .list = {end.memory.sge(0, 8)}}), 0);
  }
  // Flushes number `first` to `last`.
  static std::vector<Outcome> flushed(std::uint64_t first, std::uint64_t last) {
    std::vector<Outcome> all;
    for (; first <= last; ++first) all.push_back({first, IBV_WC_WR_FLUSH_ERR});
    return all;
  }
  // Those that are numbered `first` to `last`; the two queues of a pair complete independently.
  static std::vector<Outcome> split(const std::vector<Outcome>& all, std::uint64_t first,
                                    std::uint64_t last) {
    std::vector<Outcome> some;
    for (const Outcome& outcome : all)
      if (outcome.id >= first && outcome.id <= last) some.push_back(outcome);
    return some;
  }
};

TEST_F(Flush, of_both_queues_is_in_order_and_covers_unsignaled_requests) {
  const Pair pair(nic());
  post_receives(pair.left, 100, 5);
  post_waiting(pair, 1, 2, IBV_SEND_SIGNALED);
  post_waiting(pair, 3, 2, 0);
  ASSERT_EQ(modify(pair.left, to_state(IBV_QPS_ERR)), 0);
  const std::vector<Outcome> all = outcomes(pair.left.cq.get(), 9);
  EXPECT_EQ(split(all, 1, 4), flushed(1, 4));
  EXPECT_EQ(split(all, 100, 104), flushed(100, 104));
  EXPECT_TRUE(is_empty(pair.left.cq.get()));
  EXPECT_EQ(pair.left.state(), IBV_QPS_ERR);
}

TEST_F(Flush, meets_requests_that_are_posted_in_the_error_state) {
  const Pair pair(nic());
  ASSERT_EQ(modify(pair.left, to_state(IBV_QPS_ERR)), 0);
  post_waiting(pair, 1, 3, IBV_SEND_SIGNALED);
  post_receives(pair.left, 100, 2);
  const std::size_t receives = late_receives_are_flushed() ? 2 : 0;
  const std::vector<Outcome> all = outcomes(pair.left.cq.get(), 3 + receives);
  EXPECT_EQ(split(all, 1, 3), flushed(1, 3));
  EXPECT_EQ(split(all, 100, 101), flushed(100, 99 + receives));
}

TEST_F(Flush, follows_the_request_that_failed) {
  const Pair pair(nic());
  post_receives(pair.left, 100, 2);
  ibv_sge wrong = pair.left.memory.sge(0, 8);
  wrong.lkey ^= 0x5500;
  const ibv_sge good = pair.left.memory.sge(0, 8);
  const Remote remote = pair.right.memory.remote();
  const std::vector<Send> chain{{.opcode = IBV_WR_RDMA_WRITE, .id = 1, .list = {good}, .remote = remote},
                                {.opcode = IBV_WR_RDMA_WRITE, .id = 2, .list = {wrong}, .remote = remote},
                                {.opcode = IBV_WR_RDMA_WRITE, .id = 3, .list = {good}, .remote = remote},
                                {.opcode = IBV_WR_RDMA_READ, .id = 4, .list = {good}, .remote = remote}};
  ASSERT_EQ(post_chain(pair.left.qp.get(), chain).error, 0);
  const std::vector<Outcome> all = outcomes(pair.left.cq.get(), 6);
  EXPECT_THAT(split(all, 1, 4),
              ElementsAre(Outcome{1}, Outcome{2, unusable_lkey()}, Outcome{3, IBV_WC_WR_FLUSH_ERR},
                          Outcome{4, IBV_WC_WR_FLUSH_ERR}));
  EXPECT_EQ(split(all, 100, 101), flushed(100, 101));
}

TEST_F(Flush, names_the_queue_pair) {
  const Pair pair(nic());
  post_receives(pair.left, 1, 1);
  ASSERT_EQ(modify(pair.left, to_state(IBV_QPS_ERR)), 0);
  const std::vector<ibv_wc> all = take(pair.left.cq.get(), 1);
  ASSERT_EQ(all.size(), 1);
  EXPECT_EQ(all[0].qp_num, pair.left.number());
}

TEST_F(Flush, leaves_completions_that_were_there_before) {
  const Pair pair(nic());
  ASSERT_EQ(post(pair.left.qp.get(), Send{.opcode = IBV_WR_RDMA_WRITE,
                                          .id = 1,
                                          .list = {pair.left.memory.sge(0, 8)},
                                          .remote = pair.right.memory.remote()}),
            0);
  // The write is done once a read behind it is.
  ASSERT_EQ(post(pair.left.qp.get(), Send{.opcode = IBV_WR_RDMA_READ,
                                          .id = 2,
                                          .list = {pair.left.memory.sge(0, 8)},
                                          .remote = pair.right.memory.remote()}),
            0);
  const std::vector<Outcome> first = outcomes(pair.left.cq.get(), 1);
  EXPECT_EQ(first, successes(1, 1));
  EXPECT_EQ(outcomes(pair.left.cq.get(), 1), successes(2, 1));
  post_receives(pair.right, 9, 1);
  ASSERT_EQ(post(pair.left.qp.get(), Send{.id = 3, .list = {pair.left.memory.sge(0, 8)}}), 0);
  ASSERT_EQ(outcomes(pair.left.cq.get(), 1), successes(3, 1));
  ASSERT_EQ(modify(pair.right, to_state(IBV_QPS_ERR)), 0);
  EXPECT_EQ(outcomes(pair.right.cq.get(), 1), successes(9, 1));
}

TEST_F(Flush, does_not_happen_on_reset_after_which_the_pair_connects_again) {
  Pair pair(nic());
  post_receives(pair.left, 100, 3);
  post_waiting(pair, 1, 3, IBV_SEND_SIGNALED);
  for (const End* end : {&pair.left, &pair.right}) {
    ASSERT_EQ(modify(*end, to_state(IBV_QPS_RESET)), 0);
    EXPECT_EQ(end->state(), IBV_QPS_RESET);
  }
  EXPECT_TRUE(is_empty(pair.left.cq.get()));
  connect(pair.left, pair.right, {.psn = 77, .remote_psn = 88});
  pair.left.memory.fill(0, 8, 1);
  pair.right.memory.fill(0, 8, 2);
  post_receives(pair.right, 5, 1);
  post_waiting(pair, 6, 1, IBV_SEND_SIGNALED);
  EXPECT_EQ(outcomes(pair.left.cq.get(), 1), successes(6, 1));
  EXPECT_EQ(outcomes(pair.right.cq.get(), 1), successes(5, 1));
  EXPECT_TRUE(pair.right.memory.holds(0, 8, 1));
  // Nor do the old receives serve: the first that is posted now gets the first message.
  ASSERT_EQ(post(pair.left.qp.get(), Receive{.id = 7, .list = {pair.left.memory.sge(64, 8)}}), 0);
  ASSERT_EQ(post(pair.right.qp.get(), Send{.id = 8, .list = {pair.right.memory.sge(0, 8)}}), 0);
  EXPECT_EQ(outcomes(pair.left.cq.get(), 1), successes(7, 1));
}

TEST_F(Flush, ends_with_a_reset_of_both_after_which_the_pair_connects_again) {
  Pair pair(nic());
  ASSERT_EQ(modify(pair.left, to_state(IBV_QPS_ERR)), 0);
  for (const End* end : {&pair.left, &pair.right}) ASSERT_EQ(modify(*end, to_state(IBV_QPS_RESET)), 0);
  connect(pair.left, pair.right);
  for (std::uint64_t round = 0; round < 3; ++round) {
    post_receives(pair.right, round, 1);
    post_waiting(pair, round, 1, IBV_SEND_SIGNALED);
    EXPECT_EQ(outcomes(pair.left.cq.get(), 1), successes(round, 1));
    EXPECT_EQ(outcomes(pair.right.cq.get(), 1), successes(round, 1));
  }
}

}  // namespace
}  // namespace gdrbench::conformance
