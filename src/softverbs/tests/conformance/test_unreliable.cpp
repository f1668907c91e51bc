#include <arpa/inet.h>
#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "departures.hpp"
#include "end.hpp"

namespace gdrbench::conformance {
namespace {

using testing::ElementsAre;

constexpr std::size_t flag_offset = (1 << 16) - 8;  ///< in the memory of an end
constexpr EndOptions unreliable{.type = IBV_QPT_UC};

// Unreliable connections (InfiniBand specification, 9.8.2). That nothing is lost between two queue pairs of
// an idle device is no promise of the specification, but so in practice.
class Unreliable : public Conformance {
 protected:
  // What the left end sends with `length` bytes from its offset 0 on.
  static int send(const Pair& pair, std::uint64_t id, std::size_t length,
                  ibv_wr_opcode opcode = IBV_WR_SEND) {
    return post(pair.left.qp.get(), Send{.opcode = opcode,
                                         .id = id,
                                         .list = {pair.left.memory.sge(0, length)},
                                         .remote = pair.right.memory.remote(),
                                         .immediate = static_cast<std::uint32_t>(id)});
  }
  static int receive(const End& end, std::uint64_t id, std::size_t length = 1024) {
    return post(end.qp.get(), Receive{.id = id, .list = {end.memory.sge(1024 * id, length)}});
  }
  // Whether a write, which needs no receive, still arrives: behind it, everything before has come or is lost.
  static bool write_arrives(Pair& pair) {
    const std::uint64_t value = pair.right.memory.word(flag_offset) + 1;
    pair.left.memory.set_word(flag_offset, value);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    const int error = post(pair.left.qp.get(), Send{.opcode = IBV_WR_RDMA_WRITE,
                                                    .id = 99,
                                                    .list = {pair.left.memory.sge(flag_offset, 8)},
                                                    .remote = pair.right.memory.remote(flag_offset)});
    if (error != 0 || outcomes(pair.left.cq.get(), 1) != successes(99, 1)) return false;
    while (arrived(pair.right) != value) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }
  static std::uint64_t arrived(const End& end) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return end.memory.word(flag_offset);
  }
};

TEST_F(Unreliable, keeps_the_order_of_its_messages) {
  Pair pair(nic(), unreliable);
  for (std::uint64_t id = 0; id < 50; ++id) ASSERT_EQ(receive(pair.right, id), 0);
  for (std::uint64_t id = 0; id < 50; ++id) ASSERT_EQ(send(pair, id, 1 + id, IBV_WR_SEND_WITH_IMM), 0);
  EXPECT_EQ(outcomes(pair.left.cq.get(), 50), successes(0, 50));
  const std::vector<ibv_wc> received = take(pair.right.cq.get(), 50);
  ASSERT_EQ(outcomes(received), successes(0, 50));
  for (std::uint64_t id = 0; id < 50; ++id) {
    EXPECT_EQ(received[id].byte_len, 1 + id);
    EXPECT_EQ(ntohl(received[id].imm_data), id);
  }
}

TEST_F(Unreliable, carries_inline_data_and_batches_of_requests) {
  const std::uint64_t operations = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE |
                                   IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_IMM;
  Pair pair(nic(), {.type = IBV_QPT_UC, .inline_bytes = 32, .send_ops = operations});
  ASSERT_EQ(receive(pair.right, 1), 0);
  pair.left.memory.fill(0, 32, 3);
  Send inline_send{.opcode = IBV_WR_RDMA_WRITE,
                   .id = 0,
                   .list = {pair.left.memory.sge(0, 32)},
                   .remote = pair.right.memory.remote(256),
                   .flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE};
  inline_send.list[0].lkey = 0;
  ASSERT_EQ(post(pair.left.qp.get(), inline_send), 0);
  EXPECT_EQ(outcomes(pair.left.cq.get(), 1), successes(0, 1));
  ibv_qp_ex* const qp = ibv_qp_to_qp_ex(pair.left.qp.get());
  ibv_wr_start(qp);
  qp->wr_id = 1;
  qp->wr_flags = 0;
  ibv_wr_rdma_write(qp, pair.right.memory.remote().rkey, pair.right.memory.remote(512).address);
  ibv_wr_set_sge(qp, pair.left.memory.lkey(), pair.left.memory.remote().address, 32);
  qp->wr_id = 2;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send_imm(qp, htonl(77));
  ibv_wr_set_sge(qp, pair.left.memory.lkey(), pair.left.memory.remote().address, 8);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  EXPECT_EQ(outcomes(pair.left.cq.get(), 1), successes(2, 1));
  EXPECT_EQ(outcomes(pair.right.cq.get(), 1), successes(1, 1));
  EXPECT_TRUE(pair.right.memory.holds(256, 32, 3));
  EXPECT_TRUE(pair.right.memory.holds(512, 32, 3));
}

TEST_F(Unreliable, offers_neither_reads_nor_atomics) {
  const End end(nic(), unreliable);
  for (const std::uint64_t operation :
       {IBV_QP_EX_WITH_RDMA_READ, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD}) {
    ibv_qp_init_attr_ex attr{};
    attr.send_cq = attr.recv_cq = end.cq.get();
    attr.cap = {
        .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
    attr.qp_type = IBV_QPT_UC;
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.pd = nic().pd.get();
    attr.send_ops_flags = operation;
    errno = 0;
    EXPECT_EQ(QueuePair(ibv_create_qp_ex(nic().context.get(), &attr)), nullptr) << operation;
    EXPECT_EQ(errno, EOPNOTSUPP);
  }
  for (const ibv_wr_opcode opcode :
       {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP}) {
    SCOPED_TRACE(opcode_name(opcode));
    Pair pair(nic(), unreliable);
    pair.left.memory.fill(0, 8, 1);
    pair.right.memory.fill(0, 8, 2);
    if (unreliable_reads_are_refused_when_posted()) {
      EXPECT_EQ(send(pair, 1, 8, opcode), EINVAL);
      EXPECT_TRUE(write_arrives(pair));
    } else {
      EXPECT_EQ(send(pair, 1, 8, opcode), 0);
      EXPECT_NE(outcomes(pair.left.cq.get(), 1), successes(1, 1));
    }
    EXPECT_TRUE(pair.left.memory.holds(0, 8, 1));
    EXPECT_TRUE(pair.right.memory.holds(0, 8, 2));
  }
}

TEST_F(Unreliable, drops_what_finds_no_receive_and_goes_on) {
  for (const ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM}) {
    SCOPED_TRACE(opcode_name(opcode));
    Pair pair(nic(), unreliable);
    for (std::uint64_t id = 0; id < 8; ++id) ASSERT_EQ(send(pair, id, 100, opcode), 0);
    EXPECT_EQ(outcomes(pair.left.cq.get(), 8), successes(0, 8)) << "a send is done when it has left";
    ASSERT_TRUE(write_arrives(pair));
    for (std::uint64_t id = 1; id < 3; ++id) ASSERT_EQ(receive(pair.right, id), 0);
    ASSERT_EQ(send(pair, 8, 200, opcode), 0);
    EXPECT_EQ(outcomes(pair.left.cq.get(), 1), successes(8, 1));
    const std::vector<ibv_wc> received = take(pair.right.cq.get(), 1);
    ASSERT_EQ(outcomes(received), successes(1, 1));
    EXPECT_EQ(received[0].byte_len, 200);
    EXPECT_TRUE(is_empty(pair.right.cq.get()));
    EXPECT_EQ(pair.right.state(), IBV_QPS_RTS);
  }
}

TEST_F(Unreliable, drops_what_is_longer_than_its_receive) {
  if (!unreliable_sends_that_do_not_fit_are_dropped()) GTEST_SKIP() << "not on this device";
  Pair pair(nic(), unreliable);
  pair.left.memory.fill(0, 1024, 1);
  pair.right.memory.fill(0, pair.right.memory.size(), 2);
  pair.right.memory.set_word(flag_offset, 0);
  ASSERT_EQ(receive(pair.right, 1, 64), 0);
  for (const std::size_t length : {65, 1024, 20'000}) ASSERT_EQ(send(pair, length, length), 0);
  ASSERT_EQ(send(pair, 5, 64), 0);
  EXPECT_THAT(outcomes(pair.left.cq.get(), 4),
              ElementsAre(Outcome{65}, Outcome{1024}, Outcome{20'000}, Outcome{5}));
  const std::vector<ibv_wc> received = take(pair.right.cq.get(), 1);
  ASSERT_EQ(outcomes(received), successes(1, 1));
  EXPECT_EQ(received[0].byte_len, 64);
  EXPECT_TRUE(pair.right.memory.holds(1024, 64, 1));
  EXPECT_EQ(pair.right.state(), IBV_QPS_RTS);
}

TEST_F(Unreliable, drops_writes_without_a_right_and_goes_on) {
  struct Case {
    const char* name;
    int access, region_access;
    Remote (*target)(const Memory&);
  };
  const Case cases[] = {{"unknown rkey", all_access, all_access,
                         [](const Memory& memory) {
                           return Remote{memory.remote().address, memory.remote().rkey ^ 0x5a00};
                         }},
                        {"outside the region", all_access, all_access,
                         [](const Memory& memory) { return memory.remote(memory.size() - 99); }},
                        {"region without the right", all_access, IBV_ACCESS_LOCAL_WRITE,
                         [](const Memory& memory) { return memory.remote(); }},
                        {"queue pair without the right", IBV_ACCESS_LOCAL_WRITE, all_access,
                         [](const Memory& memory) { return memory.remote(); }}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Pair pair(nic(),
              Ends{.left = unreliable,
                   .right = {.type = IBV_QPT_UC, .access = c.access, .region_access = c.region_access}});
    pair.right.memory.fill(0, pair.right.memory.size(), 2);
    ASSERT_EQ(receive(pair.right, 3), 0);
    ASSERT_EQ(post(pair.left.qp.get(), Send{.opcode = IBV_WR_RDMA_WRITE,
                                            .id = 1,
                                            .list = {pair.left.memory.sge(0, 100)},
                                            .remote = c.target(pair.right.memory)}),
              0);
    ASSERT_EQ(send(pair, 2, 50), 0);
    EXPECT_EQ(outcomes(pair.left.cq.get(), 2), successes(1, 2)) << "nobody tells the requester";
    const std::vector<ibv_wc> received = take(pair.right.cq.get(), 1);
    ASSERT_EQ(outcomes(received), successes(3, 1));
    EXPECT_EQ(received[0].byte_len, 50);
    EXPECT_TRUE(pair.right.memory.holds(0, 1024, 2));
    EXPECT_EQ(pair.left.state(), IBV_QPS_RTS);
    EXPECT_EQ(pair.right.state(), IBV_QPS_RTS);
    EXPECT_FALSE(event_waits(nic()));
  }
}

TEST_F(Unreliable, loses_what_goes_to_a_remote_that_is_not_there) {
  const End end(nic(), unreliable);
  connect(end, 0xfffff0);
  for (const std::uint64_t id : {0, 1, 2})
    ASSERT_EQ(post(end.qp.get(), Send{.id = id, .list = {end.memory.sge(0, 100)}}), 0);
  EXPECT_EQ(outcomes(end.cq.get(), 3), successes(0, 3));
  EXPECT_EQ(end.state(), IBV_QPS_RTS);
}

TEST_F(Unreliable, survives_its_remote_and_serves_one_that_comes_back) {
  Pair pair(nic(), unreliable);
  ASSERT_TRUE(write_arrives(pair));
  ASSERT_EQ(modify(pair.right, to_state(IBV_QPS_RESET)), 0);
  for (const std::uint64_t id : {0, 1, 2, 3}) {
    ASSERT_EQ(send(pair, id, 100), 0);
    EXPECT_EQ(outcomes(pair.left.cq.get(), 1), successes(id, 1));
  }
  EXPECT_EQ(pair.left.state(), IBV_QPS_RTS);
  Link back;
  std::swap(back.psn, back.remote_psn);
  connect(pair.right, pair.left.number(), back);
  ASSERT_EQ(receive(pair.right, 1), 0);
  // The first ones may be lost, as any may.
  bool came = false;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!came && std::chrono::steady_clock::now() < deadline) {
    ASSERT_EQ(send(pair, 4, 100), 0);
    ASSERT_EQ(outcomes(pair.left.cq.get(), 1), successes(4, 1));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ibv_wc completion{};
    came = ibv_poll_cq(pair.right.cq.get(), 1, &completion) == 1;
  }
  EXPECT_TRUE(came);
  EXPECT_TRUE(write_arrives(pair));
}

TEST_F(Unreliable, fails_a_request_whose_own_memory_is_wrong_and_still_receives) {
  Pair pair(nic(), unreliable);
  ASSERT_TRUE(write_arrives(pair));
  ASSERT_EQ(receive(pair.left, 7), 0);
  ASSERT_EQ(receive(pair.right, 1), 0);
  ibv_sge wrong = pair.left.memory.sge(0, 8);
  wrong.addr += pair.left.memory.size();
  ASSERT_EQ(send(pair, 1, 10), 0);
  ASSERT_EQ(post(pair.left.qp.get(), Send{.id = 2, .list = {wrong}}), 0);
  static_cast<void>(send(pair, 3, 10));  // where the error is known already, the state may refuse it
  EXPECT_THAT(outcomes(pair.left.cq.get(), 2), ElementsAre(Outcome{1}, Outcome{2, IBV_WC_LOC_PROT_ERR}));
  EXPECT_EQ(outcomes(pair.right.cq.get(), 1), successes(1, 1)) << "what was posted before goes";
  EXPECT_EQ(pair.left.state(), state_after_unreliable_local_error());
  EXPECT_EQ(pair.right.state(), IBV_QPS_RTS);
  if (state_after_unreliable_local_error() == IBV_QPS_ERR) return;
  EXPECT_THAT(outcomes(pair.left.cq.get(), 1), ElementsAre(Outcome{3, IBV_WC_WR_FLUSH_ERR}));
  ASSERT_EQ(post(pair.right.qp.get(), Send{.id = 4, .list = {pair.right.memory.sge(0, 60)}}), 0);
  EXPECT_EQ(outcomes(pair.left.cq.get(), 1), successes(7, 1));
  ASSERT_EQ(modify(pair.left, to_state(IBV_QPS_RTS)), 0);
  EXPECT_TRUE(write_arrives(pair));
}

TEST_F(Unreliable, drops_a_message_whole_whose_memory_goes_away_in_its_middle) {
  if (state_after_unreliable_local_error() == IBV_QPS_ERR) GTEST_SKIP() << "its queue pair is lost here";
  constexpr std::size_t length = 32 << 20;
  Pair pair(nic(), Ends{.left = unreliable, .right = {.type = IBV_QPT_UC, .memory_bytes = length}});
  ASSERT_TRUE(write_arrives(pair));
  Memory source(nic().pd.get(), length);
  ASSERT_EQ(post(pair.right.qp.get(), Receive{.id = 1, .list = {pair.right.memory.sge(0, length)}}), 0);
  ASSERT_EQ(post(pair.left.qp.get(), Send{.id = 2, .list = {source.sge(0, length)}}), 0);
  source.deregister();
  const std::vector<Outcome> sent = outcomes(pair.left.cq.get(), 1);
  ASSERT_EQ(sent.size(), 1);
  if (sent[0].status == IBV_WC_SUCCESS) GTEST_SKIP() << "it had left before its memory was deregistered";
  EXPECT_EQ(sent[0].status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(pair.left.state(), IBV_QPS_SQE);
  ASSERT_EQ(modify(pair.left, to_state(IBV_QPS_RTS)), 0);
  ASSERT_TRUE(write_arrives(pair));
  EXPECT_TRUE(is_empty(pair.right.cq.get()));
  ASSERT_EQ(send(pair, 3, 100), 0);
  const std::vector<ibv_wc> received = take(pair.right.cq.get(), 1);
  ASSERT_EQ(outcomes(received), successes(1, 1));
  EXPECT_EQ(received[0].byte_len, 100);
}

TEST_F(Unreliable, fails_where_its_own_receive_may_not_be_written) {
  Pair pair(nic(), Ends{.left = unreliable, .right = {.type = IBV_QPT_UC, .region_access = 0}});
  ASSERT_EQ(receive(pair.right, 1), 0);
  ASSERT_EQ(receive(pair.right, 2), 0);
  ASSERT_EQ(send(pair, 1, 100), 0);
  EXPECT_EQ(outcomes(pair.left.cq.get(), 1), successes(1, 1));
  EXPECT_THAT(outcomes(pair.right.cq.get(), 2),
              ElementsAre(Outcome{1, unusable_receive()}, Outcome{2, IBV_WC_WR_FLUSH_ERR}));
  EXPECT_EQ(pair.left.state(), IBV_QPS_RTS);
}

TEST_F(Unreliable, takes_shared_receives) {
  SharedReceives srq;
  ibv_srq_init_attr init{};
  init.attr = {.max_wr = 8, .max_sge = 1, .srq_limit = 0};
  srq.reset(made(ibv_create_srq(nic().pd.get(), &init), "ibv_create_srq"));
  Pair pair(nic(), Ends{.left = unreliable, .right = {.type = IBV_QPT_UC, .shared_receives = srq.get()}});
  ASSERT_EQ(send(pair, 1, 100), 0);
  ASSERT_EQ(outcomes(pair.left.cq.get(), 1), successes(1, 1));
  ASSERT_TRUE(write_arrives(pair));
  ASSERT_EQ(post(srq.get(), Receive{.id = 5, .list = {pair.right.memory.sge(0, 1024)}}), 0);
  ASSERT_EQ(send(pair, 2, 200), 0);
  const std::vector<ibv_wc> received = take(pair.right.cq.get(), 1);
  ASSERT_EQ(outcomes(received), successes(5, 1));
  EXPECT_EQ(received[0].byte_len, 200);
}

TEST_F(Unreliable, is_flushed_in_the_error_state) {
  Pair pair(nic(), unreliable);
  ASSERT_EQ(receive(pair.left, 1), 0);
  ASSERT_EQ(modify(pair.left, to_state(IBV_QPS_ERR)), 0);
  EXPECT_THAT(outcomes(pair.left.cq.get(), 1), ElementsAre(Outcome{1, IBV_WC_WR_FLUSH_ERR}));
  ASSERT_EQ(send(pair, 2, 8), 0);
  EXPECT_THAT(outcomes(pair.left.cq.get(), 1), ElementsAre(Outcome{2, IBV_WC_WR_FLUSH_ERR}));
}

TEST_F(Unreliable, needs_only_the_attributes_of_its_kind) {
  const End end(nic(), unreliable);
  Link link;
  link.psn = 0xabcde1;
  for (const ibv_qp_state to : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    SCOPED_TRACE(to);
    const Transition whole = to == IBV_QPS_INIT  ? to_init(end)
                             : to == IBV_QPS_RTR ? to_rtr(end, 0x77, link)
                                                 : to_rts(end, link);
    for (int bit = 1; bit != 0 && bit <= whole.mask; bit <<= 1) {
      if ((whole.mask & bit) == 0 || bit == IBV_QP_STATE) continue;
      Transition partial = whole;
      partial.mask &= ~bit;
      EXPECT_EQ(modify(end, partial), EINVAL) << "without attribute " << bit;
    }
    // Those of a reliable connection, which it has no use for.
    for (const int bit : {IBV_QP_MIN_RNR_TIMER, IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QP_TIMEOUT, IBV_QP_RETRY_CNT,
                          IBV_QP_RNR_RETRY, IBV_QP_MAX_QP_RD_ATOMIC, IBV_QP_QKEY}) {
      Transition more = whole;
      more.mask |= bit;
      EXPECT_EQ(modify(end, more), EINVAL) << "with attribute " << bit;
    }
    EXPECT_EQ(modify(end, whole), 0);
    EXPECT_EQ(end.state(), to);
  }
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(end.qp.get(), &attr, IBV_QP_STATE | IBV_QP_AV, &init), 0);
  EXPECT_EQ(init.qp_type, IBV_QPT_UC);
  EXPECT_EQ(attr.path_mtu, nic().port.active_mtu);
  EXPECT_EQ(attr.dest_qp_num, 0x77);
  EXPECT_EQ(attr.rq_psn, link.remote_psn);
  EXPECT_EQ(attr.sq_psn, link.psn);
  EXPECT_EQ(attr.ah_attr.grh.sgid_index, nic().gid_index);
}

TEST_F(Unreliable, does_not_talk_to_a_reliable_connection) {
  End left(nic(), unreliable), right(nic());
  connect(left, right);
  ASSERT_EQ(receive(right, 1), 0);
  ASSERT_EQ(post(left.qp.get(), Send{.id = 1, .list = {left.memory.sge(0, 100)}}), 0);
  EXPECT_EQ(outcomes(left.cq.get(), 1), successes(1, 1));
  EXPECT_TRUE(is_empty(right.cq.get()));
}

}  // namespace
}  // namespace gdrbench::conformance
