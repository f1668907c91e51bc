#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "departures.hpp"
#include "end.hpp"

namespace gdrbench::conformance {
namespace {

// The other interface to send queues: ibv_wr_start, ibv_wr_…, ibv_wr_complete.
class WorkRequestApi : public Conformance {
 protected:
  static constexpr std::uint64_t operations = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                                              IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                              IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                              IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
  static constexpr std::size_t length = 5000;

  void SetUp() override {
    Conformance::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    try {
      pair_.emplace(
          nic(), Ends{.left = {.send_slots = 8, .list_length = 3, .inline_bytes = 64, .send_ops = operations},
                      .right = {.list_length = 3}});
    } catch (const std::system_error& error) {
      if (error.code().value() == EOPNOTSUPP) GTEST_SKIP() << "the device has no ibv_wr_*";
      throw;
    }
    qp_ = ibv_qp_to_qp_ex(left().qp.get());
    ASSERT_NE(qp_, nullptr);
    left().memory.fill(0, left().memory.size(), ours);
    right().memory.fill(0, right().memory.size(), theirs);
  }

  End& left() { return pair_->left; }
  End& right() { return pair_->right; }
  // Opens a request in the batch.
  void next(std::uint64_t id, unsigned flags = IBV_SEND_SIGNALED) {
    qp_->wr_id = id;
    qp_->wr_flags = flags;
  }
  void set_sge(const ibv_sge& sge) { ibv_wr_set_sge(qp_, sge.lkey, sge.addr, sge.length); }
  void post_receive(std::uint64_t id) {
    ASSERT_EQ(post(right().qp.get(), Receive{.id = id, .list = {right().memory.sge(8192 * id, 8192)}}), 0);
  }
  void expect_done(std::uint64_t count) {
    ASSERT_EQ(ibv_wr_complete(qp_), 0);
    ASSERT_EQ(outcomes(left().cq.get(), count), successes(0, count));
  }

  std::optional<Pair> pair_;
  ibv_qp_ex* qp_ = nullptr;
};

TEST_F(WorkRequestApi, sends_with_and_without_immediate_data) {
  for (std::uint64_t id : {1, 2}) post_receive(id);
  ibv_wr_start(qp_);
  next(0);
  ibv_wr_send(qp_);
  set_sge(left().memory.sge(0, length));
  next(1);
  ibv_wr_send_imm(qp_, htonl(0x01020384));
  set_sge(left().memory.sge(0, length));
  expect_done(2);
  const std::vector<ibv_wc> received = take(right().cq.get(), 2);
  ASSERT_EQ(outcomes(received), successes(1, 2));
  EXPECT_EQ(received[0].wc_flags & IBV_WC_WITH_IMM, 0);
  EXPECT_EQ(received[1].wc_flags & IBV_WC_WITH_IMM, IBV_WC_WITH_IMM);
  EXPECT_EQ(ntohl(received[1].imm_data), 0x01020384);
  for (const std::size_t id : {1, 2}) EXPECT_TRUE(right().memory.holds(8192 * id, length, ours));
}

TEST_F(WorkRequestApi, writes_with_and_without_immediate_data) {
  post_receive(5);
  const Remote remote = right().memory.remote();
  ibv_wr_start(qp_);
  next(0);
  ibv_wr_rdma_write(qp_, remote.rkey, remote.address);
  set_sge(left().memory.sge(0, length));
  next(1);
  ibv_wr_rdma_write_imm(qp_, remote.rkey, remote.address + 8192, htonl(77));
  set_sge(left().memory.sge(0, length));
  expect_done(2);
  const std::vector<ibv_wc> received = take(right().cq.get(), 1);
  ASSERT_EQ(outcomes(received), successes(5, 1));
  EXPECT_EQ(received[0].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(ntohl(received[0].imm_data), 77);
  EXPECT_TRUE(right().memory.holds(0, length, ours));
  EXPECT_TRUE(right().memory.holds(8192, length, ours));
}

TEST_F(WorkRequestApi, reads_and_does_atomics) {
  const Remote remote = right().memory.remote();
  right().memory.set_word(0, 40);
  ibv_wr_start(qp_);
  next(0);
  ibv_wr_atomic_fetch_add(qp_, remote.rkey, remote.address, 2);
  set_sge(left().memory.sge(0, 8));
  next(1);
  ibv_wr_atomic_cmp_swp(qp_, remote.rkey, remote.address, 42, 99);
  set_sge(left().memory.sge(8, 8));
  next(2);
  ibv_wr_rdma_read(qp_, remote.rkey, remote.address);
  set_sge(left().memory.sge(16, length));
  expect_done(3);
  EXPECT_EQ(left().memory.word(0), 40);
  EXPECT_EQ(left().memory.word(8), 42);
  EXPECT_TRUE(std::ranges::equal(left().memory.bytes(16, length), right().memory.bytes(0, length)));
  EXPECT_EQ(right().memory.word(0), 99);
}

TEST_F(WorkRequestApi, gathers_lists) {
  ibv_sge list[] = {left().memory.sge(700, 100), left().memory.sge(3, 1), left().memory.sge(200, 33)};
  if (!batched_lists_may_be_uneven())
    for (ibv_sge& sge : list) sge.length = 100;
  const Remote remote = right().memory.remote();
  ibv_wr_start(qp_);
  next(0);
  ibv_wr_rdma_write(qp_, remote.rkey, remote.address);
  ibv_wr_set_sge_list(qp_, std::size(list), list);
  expect_done(1);
  std::size_t offset = 0;
  for (const ibv_sge& sge : list) {
    EXPECT_EQ(std::memcmp(right().memory.bytes(offset, sge.length).data(), reinterpret_cast<void*>(sge.addr),
                          sge.length),
              0);
    offset += sge.length;
  }
}

TEST_F(WorkRequestApi, takes_inline_data_when_it_is_set) {
  const Remote remote = right().memory.remote();
  std::vector<std::byte> first = pattern(20, 7), second = pattern(13, 8), third = pattern(31, 9);
  const std::vector<std::byte> kept[] = {first, second, third};
  std::vector<std::byte> joined = second;
  joined.insert(joined.end(), third.begin(), third.end());
  const ibv_data_buf list[] = {{second.data(), second.size()}, {third.data(), third.size()}};
  ibv_wr_start(qp_);
  next(0, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
  ibv_wr_rdma_write(qp_, remote.rkey, remote.address);
  ibv_wr_set_inline_data(qp_, first.data(), first.size());
  next(1, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
  ibv_wr_rdma_write(qp_, remote.rkey, remote.address + 20);
  if (batched_inline_lists_work())
    ibv_wr_set_inline_data_list(qp_, std::size(list), list);
  else
    ibv_wr_set_inline_data(qp_, joined.data(), joined.size());
  for (std::vector<std::byte>* data : {&first, &second, &third, &joined})
    std::ranges::fill(*data, std::byte{0});
  expect_done(2);
  EXPECT_TRUE(std::ranges::equal(right().memory.bytes(0, 20), kept[0]));
  EXPECT_TRUE(std::ranges::equal(right().memory.bytes(20, 13), kept[1]));
  EXPECT_TRUE(std::ranges::equal(right().memory.bytes(33, 31), kept[2]));
}

TEST_F(WorkRequestApi, does_nothing_of_a_batch_that_is_aborted) {
  const Remote remote = right().memory.remote();
  const auto write = [&](std::uint64_t id, std::size_t offset) {
    next(id);
    ibv_wr_rdma_write(qp_, remote.rkey, remote.address + offset);
    set_sge(left().memory.sge(0, 8));
  };
  ibv_wr_start(qp_);
  write(5, 0);
  write(6, 8);
  ibv_wr_abort(qp_);
  ibv_wr_start(qp_);
  write(0, 16);
  expect_done(1);
  EXPECT_TRUE(right().memory.holds(0, 16, theirs));
  EXPECT_EQ(right().memory.word(16), left().memory.word(0));
}

TEST_F(WorkRequestApi, does_nothing_of_a_batch_that_the_queue_cannot_hold) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(left().qp.get(), &attr, IBV_QP_CAP, &init), 0);
  const Remote remote = right().memory.remote();
  ibv_wr_start(qp_);
  for (std::uint32_t i = 0; i < init.cap.max_send_wr + 1; ++i) {
    next(i);
    ibv_wr_rdma_write(qp_, remote.rkey, remote.address);
    set_sge(left().memory.sge(0, 8));
  }
  EXPECT_EQ(ibv_wr_complete(qp_), batch_beyond_the_queue());
  ibv_wr_start(qp_);
  next(0);
  ibv_wr_rdma_read(qp_, remote.rkey, remote.address);
  set_sge(left().memory.sge(64, 8));
  expect_done(1);
  EXPECT_TRUE(right().memory.is_untouched(theirs));
}

TEST_F(WorkRequestApi, mixes_with_ibv_post_send) {
  const Remote remote = right().memory.remote();
  ASSERT_EQ(
      post(left().qp.get(),
           Send{.opcode = IBV_WR_RDMA_WRITE, .id = 0, .list = {left().memory.sge(0, 8)}, .remote = remote}),
      0);
  ibv_wr_start(qp_);
  next(1, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
  ibv_wr_rdma_read(qp_, remote.rkey, remote.address);
  set_sge(left().memory.sge(64, 8));
  expect_done(2);
  EXPECT_EQ(left().memory.word(64), left().memory.word(0));
}

TEST_F(WorkRequestApi, sends_datagrams) {
  const auto make = [this](std::uint64_t send_ops) {
    auto end = std::make_unique<End>(nic(), EndOptions{.type = IBV_QPT_UD, .send_ops = send_ops});
    Transition step = to_state(IBV_QPS_INIT);
    step.attr.port_num = port_number;
    step.attr.qkey = 5;
    step.mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
    succeed(modify(*end, step), "ibv_modify_qp to INIT");
    succeed(modify(*end, to_state(IBV_QPS_RTR)), "ibv_modify_qp to RTR");
    step = to_state(IBV_QPS_RTS);
    step.mask |= IBV_QP_SQ_PSN;
    succeed(modify(*end, step), "ibv_modify_qp to RTS");
    return end;
  };
  const auto from = make(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM), to = make(0);
  ibv_ah_attr self = nic().self();
  const AddressHandle handle(made(ibv_create_ah(nic().pd.get(), &self), "ibv_create_ah"));
  from->memory.fill(0, 100, ours);
  ASSERT_EQ(post(to->qp.get(), Receive{.list = {to->memory.sge(0, 1000)}}), 0);
  ibv_qp_ex* const qp = ibv_qp_to_qp_ex(from->qp.get());
  ibv_wr_start(qp);
  qp->wr_id = 3;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send_imm(qp, htonl(11));
  ibv_wr_set_ud_addr(qp, handle.get(), to->number(), 5);
  const ibv_sge sge = from->memory.sge(0, 100);
  ibv_wr_set_sge(qp, sge.lkey, sge.addr, sge.length);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  EXPECT_EQ(outcomes(from->cq.get(), 1), successes(3, 1));
  const std::vector<ibv_wc> received = take(to->cq.get(), 1);
  ASSERT_EQ(outcomes(received), successes(0, 1));
  EXPECT_EQ(ntohl(received[0].imm_data), 11);
  EXPECT_TRUE(to->memory.holds(40, 100, ours));
}

}  // namespace
}  // namespace gdrbench::conformance
