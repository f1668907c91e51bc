#include <arpa/inet.h>
#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "departures.hpp"
#include "end.hpp"

namespace gdrbench::conformance {
namespace {

class Completions : public Conformance {
 protected:
  static int write(const Pair& pair, std::uint64_t id) {
    return post(pair.left.qp.get(), Send{.opcode = IBV_WR_RDMA_WRITE,
                                         .id = id,
                                         .list = {pair.left.memory.sge(0, 8)},
                                         .remote = pair.right.memory.remote()});
  }
};

TEST_F(Completions, are_polled_in_batches_no_larger_than_asked_for) {
  const Pair pair(nic());
  for (std::uint64_t id = 0; id < 5; ++id) ASSERT_EQ(write(pair, id), 0);
  EXPECT_EQ(outcomes(pair.left.cq.get(), 2), successes(0, 2));
  EXPECT_EQ(outcomes(pair.left.cq.get(), 3), successes(2, 3));
  EXPECT_TRUE(is_empty(pair.left.cq.get()));
}

TEST_F(Completions, of_several_queue_pairs_meet_in_one_queue_and_name_theirs) {
  const CompletionQueue cq(
      made(ibv_create_cq(nic().context.get(), 64, nullptr, nullptr, 0), "ibv_create_cq"));
  ibv_qp_init_attr init = small_queue_pair(cq.get(), cq.get());
  End first(nic()), second(nic());
  first.qp.reset(made(ibv_create_qp(nic().pd.get(), &init), "ibv_create_qp"));
  second.qp.reset(made(ibv_create_qp(nic().pd.get(), &init), "ibv_create_qp"));
  connect(first, second);
  ASSERT_EQ(post(second.qp.get(), Receive{.id = 2, .list = {second.memory.sge(0, 8)}}), 0);
  ASSERT_EQ(post(first.qp.get(), Send{.id = 1, .list = {first.memory.sge(0, 8)}}), 0);
  const std::vector<ibv_wc> both = take(cq.get(), 2);
  ASSERT_EQ(both.size(), 2);
  for (const ibv_wc& completion : both)
    EXPECT_EQ(completion.qp_num, completion.wr_id == 1 ? first.number() : second.number());
  EXPECT_NE(both[0].wr_id, both[1].wr_id);
}

TEST_F(Completions, of_sends_and_receives_may_have_queues_of_their_own) {
  const CompletionQueue receives(
      made(ibv_create_cq(nic().context.get(), 8, nullptr, nullptr, 0), "ibv_create_cq"));
  End left(nic()), right(nic());
  ibv_qp_init_attr init = small_queue_pair(right.cq.get(), receives.get());
  right.qp.reset(made(ibv_create_qp(nic().pd.get(), &init), "ibv_create_qp"));
  connect(left, right);
  ASSERT_EQ(post(right.qp.get(), Receive{.id = 5, .list = {right.memory.sge(0, 8)}}), 0);
  ASSERT_EQ(post(left.qp.get(), Receive{.id = 6, .list = {left.memory.sge(0, 8)}}), 0);
  ASSERT_EQ(post(left.qp.get(), Send{.id = 7, .list = {left.memory.sge(8, 8)}}), 0);
  ASSERT_EQ(post(right.qp.get(), Send{.id = 8, .list = {right.memory.sge(8, 8)}}), 0);
  EXPECT_EQ(outcomes(receives.get(), 1), successes(5, 1));
  EXPECT_EQ(outcomes(right.cq.get(), 1), successes(8, 1));
  EXPECT_TRUE(is_empty(receives.get()));
  EXPECT_TRUE(is_empty(right.cq.get()));
}

TEST_F(Completions, beyond_what_the_queue_holds_are_an_asynchronous_error_of_it) {
  constexpr std::uint32_t surplus = 4;
  // A queue of that many entries may get more than asked for; the writes are as many as it got, and some.
  const int entries = End(nic(), {.completions = 1}).cq->cqe;
  const auto writes = static_cast<std::uint32_t>(entries) + surplus;
  if (writes > static_cast<std::uint32_t>(nic().attributes.max_qp_wr))
    GTEST_SKIP() << "no queue pair posts so many";
  const Pair pair(nic(), Ends{.left = {.send_slots = writes, .completions = 1}});
  ASSERT_FALSE(event_waits(nic()));
  for (std::uint32_t id = 0; id < writes; ++id) ASSERT_EQ(write(pair, id), 0);
  const std::optional<ibv_async_event> event = next_event(nic());
  ASSERT_TRUE(event);
  EXPECT_EQ(event->event_type, IBV_EVENT_CQ_ERR) << ibv_event_type_str(event->event_type);
  EXPECT_EQ(event->element.cq, pair.left.cq.get());
}

// The other interface to completion queues.
class ExtendedCompletions : public Completions {
 protected:
  static constexpr unsigned everything = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM |
                                         IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_SRC_QP | IBV_WC_EX_WITH_SLID |
                                         IBV_WC_EX_WITH_SL;

  // Starts to poll; waits 20 s for something to be there.
  static int start(ibv_cq_ex* cq) {
    int error = ENOENT;
    for (const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
         error == ENOENT && std::chrono::steady_clock::now() < deadline; std::this_thread::yield()) {
      ibv_poll_cq_attr attr{};
      error = ibv_start_poll(cq, &attr);
    }
    return error;
  }

  void SetUp() override {
    Completions::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ibv_cq_init_attr_ex attr{};
    attr.cqe = 64;
    attr.wc_flags = everything;
    cq_ = ibv_create_cq_ex(nic().context.get(), &attr);
    if (cq_ == nullptr && errno == EOPNOTSUPP) GTEST_SKIP() << "the device has no ibv_create_cq_ex";
    ASSERT_NE(cq_, nullptr) << errno;
    owner_.reset(ibv_cq_ex_to_cq(cq_));
    pair_.emplace(nic());
    ibv_qp_init_attr init = small_queue_pair(owner_.get(), owner_.get());
    pair_->right.qp.reset(made(ibv_create_qp(nic().pd.get(), &init), "ibv_create_qp"));
    ASSERT_EQ(modify(pair_->left, to_state(IBV_QPS_RESET)), 0);
    connect(pair_->left, pair_->right);
  }

  ibv_cq_ex* cq_ = nullptr;
  CompletionQueue owner_;
  std::optional<Pair> pair_;
};

TEST_F(ExtendedCompletions, are_read_one_after_the_other) {
  for (std::uint64_t id = 0; id < 3; ++id)
    ASSERT_EQ(post(pair_->right.qp.get(), Receive{.id = id, .list = {pair_->right.memory.sge(0, 64)}}), 0);
  for (std::uint32_t i = 0; i < 3; ++i)
    ASSERT_EQ(post(pair_->left.qp.get(), Send{.opcode = IBV_WR_SEND_WITH_IMM,
                                              .id = i,
                                              .list = {pair_->left.memory.sge(0, 10 + i)},
                                              .immediate = 100 + i}),
              0);
  ASSERT_EQ(outcomes(pair_->left.cq.get(), 3), successes(0, 3));
  ASSERT_EQ(start(cq_), 0);
  for (std::uint32_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(cq_->wr_id, i);
    EXPECT_EQ(cq_->status, IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_wc_read_opcode(cq_), IBV_WC_RECV);
    EXPECT_EQ(ibv_wc_read_byte_len(cq_), 10 + i);
    EXPECT_EQ(ibv_wc_read_wc_flags(cq_) & IBV_WC_WITH_IMM, IBV_WC_WITH_IMM);
    EXPECT_EQ(ntohl(ibv_wc_read_imm_data(cq_)), 100 + i);
    EXPECT_EQ(ibv_wc_read_qp_num(cq_), pair_->right.number());
    if (i == 2) break;
    const int error = ibv_next_poll(cq_);
    if (error == 0) continue;
    ASSERT_EQ(error, ENOENT);
    ibv_end_poll(cq_);
    ASSERT_EQ(start(cq_), 0);
  }
  EXPECT_EQ(ibv_next_poll(cq_), ENOENT);
  ibv_end_poll(cq_);
}

TEST_F(ExtendedCompletions, say_when_there_is_none) {
  ibv_poll_cq_attr attr{};
  EXPECT_EQ(ibv_start_poll(cq_, &attr), ENOENT);
}

TEST_F(ExtendedCompletions, carry_the_status_of_a_failure) {
  ibv_sge wrong = pair_->right.memory.sge(0, 8);
  wrong.lkey ^= 0x5500;
  ASSERT_EQ(post(pair_->right.qp.get(), Send{.id = 6, .list = {wrong}}), 0);
  ASSERT_EQ(start(cq_), 0);
  EXPECT_EQ(cq_->wr_id, 6);
  EXPECT_EQ(cq_->status, unusable_lkey()) << ibv_wc_status_str(cq_->status);
  EXPECT_EQ(ibv_wc_read_qp_num(cq_), pair_->right.number());
  ibv_end_poll(cq_);
}

}  // namespace
}  // namespace gdrbench::conformance
