#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "departures.hpp"
#include "end.hpp"

namespace gdrbench::conformance {
namespace {

class States : public Conformance {
 protected:
  static constexpr std::uint32_t remote = 0x77;

  // Moves a queue pair in RESET to any state.
  static void bring(const End& end, ibv_qp_state state) {
    if (state == IBV_QPS_RESET) return;
    succeed(modify(end, to_init(end)), "to INIT");
    if (state == IBV_QPS_ERR) return succeed(modify(end, to_state(state)), "to ERR");
    if (state == IBV_QPS_INIT) return;
    succeed(modify(end, to_rtr(end, remote)), "to RTR");
    if (state == IBV_QPS_RTR) return;
    succeed(modify(end, to_rts()), "to RTS");
  }
  // The transition to `state` with all that is required for it.
  static Transition full(const End& end, ibv_qp_state state) {
    if (state == IBV_QPS_INIT) return to_init(end);
    if (state == IBV_QPS_RTR) return to_rtr(end, remote);
    if (state == IBV_QPS_RTS) return to_rts();
    return to_state(state);
  }
  static Posted post_send(const End& end) {
    const Send send{.list = {end.memory.sge(0, 8)}};
    return post_chain(end.qp.get(), std::span(&send, 1));
  }
};

TEST_F(States, begin_with_reset) {
  EXPECT_EQ(End(nic()).state(), IBV_QPS_RESET);
}

TEST_F(States, before_ready_to_send_refuse_sends) {
  for (const ibv_qp_state state : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR}) {
    SCOPED_TRACE(state);
    const End end(nic());
    bring(end, state);
    const Posted posted = post_send(end);
    EXPECT_EQ(posted.error, EINVAL);
    if (bad_wr_is_set_in_a_wrong_state()) {
      EXPECT_EQ(posted.accepted, 0);
    }
    EXPECT_TRUE(is_empty(end.cq.get()));
  }
}

TEST_F(States, reset_refuses_receives) {
  const End end(nic());
  const Receive receive{.list = {end.memory.sge(0, 8)}};
  const Posted posted = post_chain(end.qp.get(), std::span(&receive, 1));
  EXPECT_EQ(posted.error, EINVAL);
  if (bad_wr_is_set_in_a_wrong_state()) {
    EXPECT_EQ(posted.accepted, 0);
  }
}

TEST_F(States, do_not_run_later_what_they_refused) {
  const End left(nic()), right(nic());
  Send send{
      .opcode = IBV_WR_RDMA_WRITE, .id = 1, .list = {left.memory.sge(0, 8)}, .remote = right.memory.remote()};
  connect(right, left.number(), {.psn = 2, .remote_psn = 1});
  ASSERT_EQ(modify(left, to_init(left)), 0);
  ASSERT_EQ(modify(left, to_rtr(left, right.number(), {.psn = 1, .remote_psn = 2})), 0);
  ASSERT_EQ(post(left.qp.get(), send), EINVAL);
  ASSERT_EQ(modify(left, to_rts({.psn = 1})), 0);
  send.id = 2;
  ASSERT_EQ(post(left.qp.get(), send), 0);
  const std::uint64_t first = refused_sends_are_forgotten() ? 2 : 1;
  EXPECT_EQ(outcomes(left.cq.get(), 3 - first), successes(first, 3 - first));
  EXPECT_TRUE(is_empty(left.cq.get()));
}

TEST_F(States, from_init_on_take_receives_that_serve_later) {
  End left(nic()), right(nic());
  ASSERT_EQ(modify(right, to_init(right)), 0);
  ASSERT_EQ(post(right.qp.get(), Receive{.id = 1, .list = {right.memory.sge(0, 8)}}), 0);
  Link back;
  std::swap(back.psn, back.remote_psn);
  ASSERT_EQ(modify(right, to_rtr(right, left.number(), back)), 0);
  ASSERT_EQ(post(right.qp.get(), Receive{.id = 2, .list = {right.memory.sge(8, 8)}}), 0);
  connect(left, right.number());
  left.memory.fill(0, 16, 1);
  for (const std::size_t offset : {0, 8})
    ASSERT_EQ(post(left.qp.get(), Send{.id = offset, .list = {left.memory.sge(offset, 8)}}), 0);
  // Ready to receive is enough for the responder.
  EXPECT_THAT(outcomes(left.cq.get(), 2), testing::ElementsAre(Outcome{0}, Outcome{8}));
  EXPECT_EQ(outcomes(right.cq.get(), 2), successes(1, 2));
  EXPECT_TRUE(right.memory.holds(0, 16, 1));
}

TEST_F(States, follow_each_other_as_the_specification_draws_them) {
  const ibv_qp_state states[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_ERR};
  const std::map<ibv_qp_state, std::vector<ibv_qp_state>> allowed{
      {IBV_QPS_RESET, {IBV_QPS_RESET, IBV_QPS_INIT}},
      {IBV_QPS_INIT, {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_ERR}},
      {IBV_QPS_RTR, {IBV_QPS_RESET, IBV_QPS_RTS, IBV_QPS_ERR}},
      {IBV_QPS_RTS, {IBV_QPS_RESET, IBV_QPS_ERR}},
      {IBV_QPS_ERR, {IBV_QPS_RESET, IBV_QPS_ERR}}};
  for (const ibv_qp_state from : states)
    for (const ibv_qp_state to : states) {
      // RTS to RTS is allowed with other attributes than those that lead there.
      SCOPED_TRACE(testing::Message() << "from " << from << " to " << to);
      const End end(nic());
      bring(end, from);
      const bool good = std::ranges::count(allowed.at(from), to) > 0;
      EXPECT_EQ(modify(end, full(end, to)), good ? 0 : EINVAL);
      EXPECT_EQ(end.state(), good ? to : from);
    }
}

TEST_F(States, are_refused_when_a_required_attribute_is_missing) {
  for (const ibv_qp_state to : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    const End end(nic());
    bring(end, static_cast<ibv_qp_state>(to - 1));
    const Transition whole = full(end, to);
    for (int bit = 1; bit != 0 && bit <= whole.mask; bit <<= 1) {
      if ((whole.mask & bit) == 0 || bit == IBV_QP_STATE) continue;
      SCOPED_TRACE(testing::Message() << "to " << to << " without attribute " << bit);
      Transition partial = whole;
      partial.mask &= ~bit;
      EXPECT_EQ(modify(end, partial), EINVAL);
    }
    EXPECT_EQ(end.state(), to - 1);
    EXPECT_EQ(modify(end, whole), 0);
  }
}

TEST_F(States, are_refused_with_attributes_that_do_not_belong_there) {
  const std::pair<ibv_qp_state, int> wrong[] = {
      {IBV_QPS_INIT, IBV_QP_AV},  {IBV_QPS_INIT, IBV_QP_SQ_PSN},  {IBV_QPS_RTR, IBV_QP_PORT},
      {IBV_QPS_RTR, IBV_QP_QKEY}, {IBV_QPS_RTS, IBV_QP_DEST_QPN}, {IBV_QPS_RTS, IBV_QP_PATH_MTU}};
  for (const auto& [to, attribute] : wrong) {
    SCOPED_TRACE(testing::Message() << "to " << to << " with attribute " << attribute);
    const End end(nic());
    bring(end, static_cast<ibv_qp_state>(to - 1));
    Transition step = full(end, to);
    step.attr.ah_attr = nic().self();
    step.attr.port_num = port_number;
    step.attr.path_mtu = nic().port.active_mtu;
    step.mask |= attribute;
    EXPECT_EQ(modify(end, step), EINVAL);
  }
}

TEST_F(States, are_refused_with_values_out_of_range) {
  using Change = void (*)(ibv_qp_attr&, const Nic&);
  struct Case {
    const char* name;
    ibv_qp_state to;
    Change change;
    bool is_checked = true;
  };
  const Case cases[] = {
      {"port 0", IBV_QPS_INIT, [](ibv_qp_attr& a, const Nic&) { a.port_num = 0; }},
      {"port 2", IBV_QPS_INIT, [](ibv_qp_attr& a, const Nic&) { a.port_num = 2; }},
      {"P_Key index", IBV_QPS_INIT,
       [](ibv_qp_attr& a, const Nic& nic) { a.pkey_index = nic.port.pkey_tbl_len; },
       p_key_index_is_checked()},
      {"path MTU", IBV_QPS_RTR, [](ibv_qp_attr& a, const Nic&) { a.path_mtu = static_cast<ibv_mtu>(6); }},
      {"GID index", IBV_QPS_RTR, [](ibv_qp_attr& a, const Nic&) { a.ah_attr.grh.sgid_index = 255; }},
      {"no GRH", IBV_QPS_RTR, [](ibv_qp_attr& a, const Nic&) { a.ah_attr.is_global = 0; }},
      {"READs served", IBV_QPS_RTR,
       [](ibv_qp_attr& a, const Nic& nic) {
         a.max_dest_rd_atomic = static_cast<std::uint8_t>(nic.attributes.max_qp_rd_atom + 1);
       },
       served_reads_are_bounded() && nic().attributes.max_qp_rd_atom < 255},
      {"READs issued", IBV_QPS_RTS,
       [](ibv_qp_attr& a, const Nic& nic) {
         a.max_rd_atomic = static_cast<std::uint8_t>(nic.attributes.max_qp_init_rd_atom + 1);
       },
       nic().attributes.max_qp_init_rd_atom < 255}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    if (!c.is_checked) continue;
    const End end(nic());
    bring(end, static_cast<ibv_qp_state>(c.to - 1));
    Transition step = full(end, c.to);
    c.change(step.attr, nic());
    // Linux has ENODATA for a GID that is not there.
    EXPECT_THAT(modify(end, step), testing::AnyOf(EINVAL, ENODATA));
    EXPECT_EQ(end.state(), c.to - 1);
  }
}

TEST_F(States, remember_what_was_set) {
  const End end(nic(), {.access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_LOCAL_WRITE});
  const Link link{.psn = 0xabcde1,
                  .remote_psn = 0x123456,
                  .timeout = 15,
                  .retry_count = 5,
                  .rnr_retry = 6,
                  .min_rnr_timer = 9,
                  .outstanding = 8};
  connect(end, 0x1234, link);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(end.qp.get(), &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_TIMEOUT, &init), 0);
  EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(attr.path_mtu, nic().port.active_mtu);
  EXPECT_EQ(attr.dest_qp_num, 0x1234);
  EXPECT_EQ(attr.rq_psn, link.remote_psn);
  EXPECT_EQ(attr.sq_psn, link.psn);
  EXPECT_EQ(attr.timeout, link.timeout);
  EXPECT_EQ(attr.retry_cnt, link.retry_count);
  EXPECT_EQ(attr.rnr_retry, link.rnr_retry);
  EXPECT_EQ(attr.min_rnr_timer, link.min_rnr_timer);
  EXPECT_EQ(attr.max_rd_atomic, link.outstanding);
  EXPECT_EQ(attr.max_dest_rd_atomic, link.outstanding);
  EXPECT_EQ(attr.port_num, port_number);
  EXPECT_EQ(attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE, 0);
  EXPECT_NE(attr.qp_access_flags & IBV_ACCESS_REMOTE_READ, 0);
  EXPECT_EQ(attr.ah_attr.is_global, 1);
  EXPECT_EQ(attr.ah_attr.grh.sgid_index, nic().gid_index);
  EXPECT_EQ(std::memcmp(&attr.ah_attr.grh.dgid, &nic().gid, sizeof(ibv_gid)), 0);
}

TEST_F(States, ready_to_send_lets_rights_change) {
  const Pair pair(nic());
  Transition step;
  step.attr.qp_access_flags = IBV_ACCESS_REMOTE_READ;
  step.mask = IBV_QP_ACCESS_FLAGS;
  ASSERT_EQ(modify(pair.right, step), 0);
  EXPECT_EQ(pair.right.state(), IBV_QPS_RTS);
  Send send{
      .opcode = IBV_WR_RDMA_READ, .list = {pair.left.memory.sge(0, 8)}, .remote = pair.right.memory.remote()};
  ASSERT_EQ(post(pair.left.qp.get(), send), 0);
  EXPECT_EQ(outcomes(pair.left.cq.get(), 1), successes(0, 1));
  send.opcode = IBV_WR_RDMA_WRITE;
  ASSERT_EQ(post(pair.left.qp.get(), send), 0);
  EXPECT_NE(outcomes(pair.left.cq.get(), 1), successes(0, 1));
}

TEST_F(States, drained_holds_later_sends_back_until_ready_again) {
  Pair pair(nic());
  if (const int error = modify(pair.left, to_state(IBV_QPS_SQD)); error != 0)
    GTEST_SKIP() << "the device does not drain send queues: errno " << error;
  pair.left.memory.fill(0, 8, 1);
  ASSERT_EQ(post(pair.left.qp.get(), Send{.opcode = IBV_WR_RDMA_WRITE,
                                          .list = {pair.left.memory.sge(0, 8)},
                                          .remote = pair.right.memory.remote()}),
            0);
  // The other direction still works, and gives the held request time to go wrong.
  for (std::uint64_t id = 1; id <= 20; ++id) {
    ASSERT_EQ(post(pair.right.qp.get(), Send{.opcode = IBV_WR_RDMA_READ,
                                             .id = id,
                                             .list = {pair.right.memory.sge(64, 8)},
                                             .remote = pair.left.memory.remote()}),
              0);
    ASSERT_EQ(outcomes(pair.right.cq.get(), 1), successes(id, 1));
  }
  EXPECT_TRUE(is_empty(pair.left.cq.get()));
  EXPECT_FALSE(pair.right.memory.holds(0, 8, 1));
  ASSERT_EQ(modify(pair.left, to_state(IBV_QPS_RTS)), 0);
  std::size_t completions = 1;
  if (!drained_queue_resumes()) {
    ASSERT_EQ(post(pair.left.qp.get(), Send{.opcode = IBV_WR_RDMA_WRITE, .id = 1}), 0);
    completions = 2;
  }
  EXPECT_EQ(outcomes(pair.left.cq.get(), completions), successes(0, completions));
  EXPECT_TRUE(pair.right.memory.holds(0, 8, 1));
}

}  // namespace
}  // namespace gdrbench::conformance
