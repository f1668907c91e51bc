#include <gmock/gmock.h>

#include <algorithm>
#include <ranges>

#include "departures.hpp"
#include "end.hpp"

namespace gdrbench::conformance {
namespace {

using testing::ElementsAre;

class SharedQueue : public Conformance {
 protected:
  static constexpr std::uint32_t wished = 16;
  static constexpr std::size_t slot = 64;

  void SetUp() override {
    Conformance::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ibv_srq_init_attr init{};
    init.attr = {.max_wr = wished, .max_sge = 2, .srq_limit = 0};
    srq_.reset(made(ibv_create_srq(nic().pd.get(), &init), "ibv_create_srq"));
    granted_ = init.attr.max_wr;
    room_ = query().max_wr;
    memory_.emplace(nic().pd.get(), 1 << 16);
    for (std::optional<Pair>* pair : {&first_, &second_})
      pair->emplace(nic(), Ends{.right = {.shared_receives = srq_.get()}});
  }

  void post_shared(std::uint64_t first, unsigned count) {
    for (std::uint64_t id = first; id < first + count; ++id)
      ASSERT_EQ(
          post(srq_.get(),
               Receive{.id = id, .list = {memory_->sge(id * slot, 8), memory_->sge(id * slot + 16, 8)}}),
          0);
  }
  static void send(const Pair& pair, std::uint64_t id = 0) {
    ASSERT_EQ(post(pair.left.qp.get(), Send{.id = id, .list = {pair.left.memory.sge(0, 16)}}), 0);
    ASSERT_EQ(outcomes(pair.left.cq.get(), 1), successes(id, 1));
  }
  ibv_srq_attr query() const {
    ibv_srq_attr attr{};
    succeed(ibv_query_srq(srq_.get(), &attr), "ibv_query_srq");
    return attr;
  }
  int set_limit(std::uint32_t limit) const {
    ibv_srq_attr attr{.max_wr = 0, .max_sge = 0, .srq_limit = limit};
    return ibv_modify_srq(srq_.get(), &attr, IBV_SRQ_LIMIT);
  }

  SharedReceives srq_;
  std::uint32_t granted_ = 0, room_ = 0;  ///< receives, as the making and the query say
  std::optional<Memory> memory_;
  std::optional<Pair> first_, second_;
};

TEST_F(SharedQueue, serves_its_queue_pairs_in_the_order_of_their_messages) {
  post_shared(0, 4);
  const Pair* const senders[] = {&*first_, &*second_, &*second_, &*first_};
  first_->left.memory.fill(0, 16, 1);
  second_->left.memory.fill(0, 16, 2);
  for (std::uint64_t id = 0; id < std::size(senders); ++id) {
    const Pair& pair = *senders[id];
    send(pair, id);
    const std::vector<ibv_wc> received = take(pair.right.cq.get(), 1);
    ASSERT_EQ(outcomes(received), successes(id, 1));
    EXPECT_EQ(received[0].qp_num, pair.right.number());
    EXPECT_EQ(received[0].byte_len, 16);
    EXPECT_TRUE(std::ranges::equal(memory_->bytes(id * slot, 8),
                                   pattern(16, &pair == &*first_ ? 1 : 2) | std::views::take(8)));
    EXPECT_TRUE(std::ranges::equal(memory_->bytes(id * slot + 16, 8),
                                   pattern(16, &pair == &*first_ ? 1 : 2) | std::views::drop(8)));
  }
  EXPECT_TRUE(is_empty(first_->right.cq.get()));
  EXPECT_TRUE(is_empty(second_->right.cq.get()));
}

TEST_F(SharedQueue, leaves_messages_waiting_while_it_is_empty) {
  ASSERT_EQ(post(first_->left.qp.get(), Send{.id = 1, .list = {first_->left.memory.sge(0, 16)}}), 0);
  EXPECT_TRUE(is_empty(first_->left.cq.get()));
  post_shared(3, 1);
  EXPECT_EQ(outcomes(first_->left.cq.get(), 1), successes(1, 1));
  EXPECT_EQ(outcomes(first_->right.cq.get(), 1), successes(3, 1));
}

TEST_F(SharedQueue, serves_writes_with_immediate_data) {
  post_shared(3, 1);
  ASSERT_EQ(post(first_->left.qp.get(), Send{.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                                             .list = {first_->left.memory.sge(0, 64)},
                                             .remote = first_->right.memory.remote()}),
            0);
  EXPECT_EQ(outcomes(first_->right.cq.get(), 1), successes(3, 1));
}

TEST_F(SharedQueue, takes_the_place_of_the_queue_pairs_own) {
  const Receive receive{.list = {memory_->sge(0, 8)}};
  const Posted posted = post_chain(first_->right.qp.get(), std::span(&receive, 1));
  EXPECT_NE(posted.error, 0);
  if (bad_wr_is_set_in_a_wrong_state()) {
    EXPECT_EQ(posted.accepted, 0);
  }
}

TEST_F(SharedQueue, raises_its_limit_event_once_when_fewer_receives_are_left) {
  post_shared(0, 6);
  ASSERT_EQ(set_limit(4), 0);
  EXPECT_EQ(query().srq_limit, 4);
  for (std::uint64_t id = 0; id < 2; ++id) send(*first_, id);
  ASSERT_EQ(outcomes(first_->right.cq.get(), 2), successes(0, 2));
  EXPECT_FALSE(event_waits(nic())) << "as many as the limit are left";
  send(*second_);
  const std::optional<ibv_async_event> event = next_event(nic());
  ASSERT_TRUE(event);
  EXPECT_EQ(event->event_type, IBV_EVENT_SRQ_LIMIT_REACHED) << ibv_event_type_str(event->event_type);
  EXPECT_EQ(event->element.srq, srq_.get());
  EXPECT_EQ(query().srq_limit, 0) << "the event disarms the limit";
  send(*second_);
  ASSERT_EQ(take(second_->right.cq.get(), 2).size(), 2);
  EXPECT_FALSE(event_waits(nic()));
}

TEST_F(SharedQueue, refuses_a_limit_beyond_its_size) {
  EXPECT_EQ(set_limit(room_ + 1), EINVAL);
  EXPECT_EQ(query().srq_limit, 0);
}

TEST_F(SharedQueue, says_what_it_holds) {
  const ibv_srq_attr attr = query();
  EXPECT_GE(granted_, wished);
  EXPECT_GE(room_, granted_);
  if (new_shared_queue_tells_its_size()) {
    EXPECT_EQ(room_, granted_);
  }
  EXPECT_GE(attr.max_sge, 2);
}

TEST_F(SharedQueue, ends_a_chain_that_it_cannot_hold_with_ENOMEM_and_keeps_what_is_before) {
  std::vector<Receive> chain;
  for (std::uint64_t id = 0; id < room_ + 2; ++id) chain.push_back({.id = id, .list = {memory_->sge(0, 16)}});
  EXPECT_EQ(post_chain(srq_.get(), chain), (Posted{.error = ENOMEM, .accepted = room_}));
  for (std::uint64_t id = 0; id < room_; ++id) send(*first_, id);
  EXPECT_EQ(outcomes(first_->right.cq.get(), room_), successes(0, room_));
}

TEST_F(SharedQueue, outlives_the_failure_of_one_of_its_queue_pairs) {
  post_shared(0, 2);
  ASSERT_EQ(modify(first_->right, to_state(IBV_QPS_ERR)), 0);
  if (last_shared_receive_is_an_event()) {
    const std::optional<ibv_async_event> event = next_event(nic());
    ASSERT_TRUE(event);
    EXPECT_EQ(event->event_type, IBV_EVENT_QP_LAST_WQE_REACHED) << ibv_event_type_str(event->event_type);
    EXPECT_EQ(event->element.qp, first_->right.qp.get());
  }
  for (std::uint64_t id = 0; id < 2; ++id) send(*second_, id);
  EXPECT_EQ(outcomes(second_->right.cq.get(), 2), successes(0, 2));
  EXPECT_TRUE(is_empty(first_->right.cq.get())) << "shared receives are not flushed";
}

}  // namespace
}  // namespace gdrbench::conformance
