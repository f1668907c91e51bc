#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "end.hpp"

namespace gdrbench::conformance {
namespace {

class CompletionChannels : public Conformance {
 protected:
  void SetUp() override {
    Conformance::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    channel_.reset(made(ibv_create_comp_channel(nic().context.get()), "ibv_create_comp_channel"));
    pair_.emplace(nic(), Ends{.right = {.channel = channel_.get()}});
    for (std::uint64_t id = 0; id < 8; ++id)
      ASSERT_EQ(post(right().qp.get(), Receive{.id = id, .list = {right().memory.sge(0, 64)}}), 0);
  }

  End& left() { return pair_->left; }
  End& right() { return pair_->right; }
  // One message to the right, polled there.
  void deliver(unsigned flags = 0, ibv_wr_opcode opcode = IBV_WR_SEND) {
    ASSERT_EQ(post(left().qp.get(), Send{.opcode = opcode,
                                         .list = {left().memory.sge(0, 8)},
                                         .remote = right().memory.remote(),
                                         .flags = flags | IBV_SEND_SIGNALED}),
              0);
    ASSERT_EQ(outcomes(left().cq.get(), 1), successes(0, 1));
    ASSERT_EQ(outcomes(right().cq.get(), 1), successes(delivered_++, 1));
  }
  bool is_readable(int timeout_ms) const {
    pollfd entry{.fd = channel_->fd, .events = POLLIN, .revents = 0};
    return poll(&entry, 1, timeout_ms) == 1;
  }
  // The completion queue of the next event, which is acknowledged; null when none comes within 20 s.
  ibv_cq* next_event() const {
    if (!is_readable(20'000)) return nullptr;
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    if (ibv_get_cq_event(channel_.get(), &cq, &context) != 0) return nullptr;
    EXPECT_EQ(context, cq->cq_context);
    ibv_ack_cq_events(cq, 1);
    return cq;
  }

  Channel channel_;
  std::optional<Pair> pair_;
  std::uint64_t delivered_ = 0;
};

TEST_F(CompletionChannels, become_readable_when_an_armed_queue_gets_a_completion) {
  ASSERT_EQ(ibv_req_notify_cq(right().cq.get(), 0), 0);
  EXPECT_FALSE(is_readable(0));
  deliver();
  EXPECT_EQ(next_event(), right().cq.get());
  EXPECT_FALSE(is_readable(0));
}

TEST_F(CompletionChannels, stay_silent_for_a_queue_that_is_not_armed) {
  deliver();
  EXPECT_FALSE(is_readable(0));
  ASSERT_EQ(ibv_req_notify_cq(right().cq.get(), 0), 0);
  deliver();
  ASSERT_EQ(next_event(), right().cq.get());
}

TEST_F(CompletionChannels, give_one_event_each_time_that_a_queue_is_armed) {
  ASSERT_EQ(ibv_req_notify_cq(right().cq.get(), 0), 0);
  ASSERT_EQ(ibv_req_notify_cq(right().cq.get(), 0), 0);
  for (int i = 0; i < 3; ++i) deliver();
  EXPECT_EQ(next_event(), right().cq.get());
  EXPECT_FALSE(is_readable(0));
  ASSERT_EQ(ibv_req_notify_cq(right().cq.get(), 0), 0);
  deliver();
  EXPECT_EQ(next_event(), right().cq.get());
}

TEST_F(CompletionChannels, can_be_non_blocking) {
  ASSERT_EQ(fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK), 0);
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  EXPECT_NE(ibv_get_cq_event(channel_.get(), &cq, &context), 0);
  EXPECT_EQ(errno, EAGAIN);
  ASSERT_EQ(ibv_req_notify_cq(right().cq.get(), 0), 0);
  deliver();
  EXPECT_EQ(next_event(), right().cq.get());
}

TEST_F(CompletionChannels, armed_for_solicited_messages_wake_for_those_only) {
  for (const ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM}) {
    SCOPED_TRACE(opcode_name(opcode));
    ASSERT_EQ(ibv_req_notify_cq(right().cq.get(), 1), 0);
    deliver(0, opcode);
    EXPECT_FALSE(is_readable(0));
    deliver(IBV_SEND_SOLICITED, opcode);
    EXPECT_EQ(next_event(), right().cq.get());
  }
}

TEST_F(CompletionChannels, armed_for_solicited_messages_wake_for_an_error) {
  ASSERT_EQ(ibv_req_notify_cq(right().cq.get(), 1), 0);
  ASSERT_EQ(modify(right(), to_state(IBV_QPS_ERR)), 0);
  EXPECT_EQ(next_event(), right().cq.get());
}

TEST_F(CompletionChannels, armed_for_all_stay_so_when_armed_for_solicited_too) {
  ASSERT_EQ(ibv_req_notify_cq(right().cq.get(), 0), 0);
  ASSERT_EQ(ibv_req_notify_cq(right().cq.get(), 1), 0);
  deliver();
  EXPECT_EQ(next_event(), right().cq.get());
}

TEST_F(CompletionChannels, tell_their_queues_apart) {
  Pair other(nic(), Ends{.right = {.channel = channel_.get()}});
  ASSERT_EQ(post(other.right.qp.get(), Receive{.list = {other.right.memory.sge(0, 8)}}), 0);
  for (End* end : {&right(), &other.right}) ASSERT_EQ(ibv_req_notify_cq(end->cq.get(), 0), 0);
  ASSERT_EQ(post(other.left.qp.get(), Send{.list = {other.left.memory.sge(0, 8)}}), 0);
  EXPECT_EQ(next_event(), other.right.cq.get());
  deliver();
  EXPECT_EQ(next_event(), right().cq.get());
}

TEST_F(CompletionChannels, let_a_queue_go_once_its_events_are_acknowledged) {
  constexpr unsigned events = 3;
  for (unsigned i = 0; i < events; ++i) {
    ASSERT_EQ(ibv_req_notify_cq(right().cq.get(), 0), 0);
    deliver();
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    ASSERT_TRUE(is_readable(20'000));
    ASSERT_EQ(ibv_get_cq_event(channel_.get(), &cq, &context), 0);
  }
  EXPECT_EQ(ibv_destroy_comp_channel(channel_.get()), EBUSY);
  ibv_ack_cq_events(right().cq.get(), events);
  pair_.reset();
  EXPECT_EQ(ibv_destroy_comp_channel(channel_.release()), 0);
}

TEST_F(CompletionChannels, serve_the_requester_as_well) {
  const Pair pair(nic(), Ends{.left = {.channel = channel_.get()}});
  ASSERT_EQ(ibv_req_notify_cq(pair.left.cq.get(), 0), 0);
  ASSERT_EQ(post(pair.left.qp.get(), Send{.opcode = IBV_WR_RDMA_READ,
                                          .list = {pair.left.memory.sge(0, 8)},
                                          .remote = pair.right.memory.remote()}),
            0);
  EXPECT_EQ(next_event(), pair.left.cq.get());
  EXPECT_EQ(outcomes(pair.left.cq.get(), 1), successes(0, 1));
}

}  // namespace
}  // namespace gdrbench::conformance
