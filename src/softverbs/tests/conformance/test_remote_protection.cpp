#include <gmock/gmock.h>

#include <tuple>

#include "departures.hpp"
#include "end.hpp"

namespace gdrbench::conformance {
namespace {

using testing::ElementsAre;

constexpr ibv_wr_opcode remote_opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
                                            IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP};

// How the remote range is not what the request may use.
enum class RemoteFault {
  wrong_rkey,
  rkey_of_another_domain,
  past_the_region,
  before_the_region,
  no_right,
  deregistered
};
constexpr RemoteFault remote_faults[] = {RemoteFault::wrong_rkey,      RemoteFault::rkey_of_another_domain,
                                         RemoteFault::past_the_region, RemoteFault::before_the_region,
                                         RemoteFault::no_right,        RemoteFault::deregistered};

const char* to_string(RemoteFault fault) {
  switch (fault) {
    case RemoteFault::wrong_rkey:
      return "wrong_rkey";
    case RemoteFault::rkey_of_another_domain:
      return "rkey_of_another_domain";
    case RemoteFault::past_the_region:
      return "range_past_the_region";
    case RemoteFault::before_the_region:
      return "range_before_the_region";
    case RemoteFault::no_right:
      return "no_right_in_the_region";
    case RemoteFault::deregistered:
      return "deregistered_rkey";
  }
  return "";
}

// The right that the responder's memory and queue pair must grant.
int needed_right(ibv_wr_opcode opcode) {
  if (is_atomic(opcode)) return IBV_ACCESS_REMOTE_ATOMIC;
  return opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
}

class RemoteProtection : public Conformance {
 protected:
  std::size_t length(ibv_wr_opcode opcode) const { return is_atomic(opcode) ? 8 : nic().mtu() * 3 + 5; }

  // Sends a request that must fail, with another one behind it, at a responder that has posted receives.
  void expect_refused(Pair& pair, Memory& target, const Remote& remote, ibv_wr_opcode opcode,
                      ibv_wc_status status, ibv_event_type event_type) {
    auto& [left, right] = pair;
    left.memory.fill(0, left.memory.size(), ours);
    target.fill(0, target.size(), theirs);
    for (const std::uint64_t id : {20, 21})
      ASSERT_EQ(post(right.qp.get(), Receive{.id = id, .list = {right.memory.sge(0, 8)}}), 0);
    Send send{.opcode = opcode,
              .id = 10,
              .list = {left.memory.sge(0, length(opcode))},
              .remote = remote,
              .operand = target.word(8),  // the compare-and-swap finds what it compares with
              .swap = 0};
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) send.operand = 1;
    ASSERT_EQ(post(left.qp.get(), send), 0);
    send.id = 11;
    ASSERT_EQ(post(left.qp.get(), send), 0);
    EXPECT_THAT(outcomes(left.cq.get(), 2),
                ElementsAre(Outcome{10, status}, Outcome{11, IBV_WC_WR_FLUSH_ERR}));
    EXPECT_EQ(left.state(), IBV_QPS_ERR);
    EXPECT_TRUE(target.is_untouched(theirs));
    EXPECT_TRUE(left.memory.is_untouched(ours));

    EXPECT_THAT(outcomes(right.cq.get(), 2),
                ElementsAre(Outcome{20, IBV_WC_WR_FLUSH_ERR}, Outcome{21, IBV_WC_WR_FLUSH_ERR}));
    EXPECT_EQ(right.state(), IBV_QPS_ERR);
    if (!refused_requests_are_events()) return;
    const std::optional<ibv_async_event> event = next_event(nic());
    ASSERT_TRUE(event);
    EXPECT_EQ(event->event_type, event_type) << ibv_event_type_str(event->event_type);
    EXPECT_EQ(event->element.qp, right.qp.get());
    EXPECT_FALSE(event_waits(nic())) << "the requester has its completion";
  }
};

class RemoteRange : public RemoteProtection,
                    public testing::WithParamInterface<std::tuple<ibv_wr_opcode, RemoteFault>> {};

TEST_P(RemoteRange, is_refused_with_an_access_error_and_stays_as_it_was) {
  const auto [opcode, fault] = GetParam();
  Pair pair(nic());
  const ProtectionDomain other_pd(made(ibv_alloc_pd(nic().context.get()), "ibv_alloc_pd"));
  const std::size_t size = length(opcode) + 64;
  int access = all_access;
  if (fault == RemoteFault::no_right) access &= ~needed_right(opcode);
  Memory target(fault == RemoteFault::rkey_of_another_domain ? other_pd.get() : nic().pd.get(), size, access);
  Remote remote = target.remote(8);
  // Aligned, so that atomics meet no other objection.
  if (fault == RemoteFault::wrong_rkey) remote.rkey ^= 0x5500;
  if (fault == RemoteFault::past_the_region)
    remote = target.remote(is_atomic(opcode) ? size : size - length(opcode) + 1);
  if (fault == RemoteFault::before_the_region) remote.address -= 16;
  if (fault == RemoteFault::deregistered) target.deregister();
  expect_refused(pair, target, remote, opcode, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
}

std::string range_name(const testing::TestParamInfo<RemoteRange::ParamType>& info) {
  return opcode_name(std::get<0>(info.param)) + "_of_" + to_string(std::get<1>(info.param));
}
INSTANTIATE_TEST_SUITE_P(Faults, RemoteRange,
                         testing::Combine(testing::ValuesIn(remote_opcodes),
                                          testing::ValuesIn(remote_faults)),
                         range_name);

class RemoteQueuePair : public RemoteProtection, public testing::WithParamInterface<ibv_wr_opcode> {};

TEST_P(RemoteQueuePair, without_the_right_takes_the_request_for_an_invalid_one) {
  const ibv_wr_opcode opcode = GetParam();
  Pair pair(nic(), Ends{.right = {.access = all_access & ~needed_right(opcode)}});
  expect_refused(pair, pair.right.memory, pair.right.memory.remote(8), opcode, IBV_WC_REM_INV_REQ_ERR,
                 IBV_EVENT_QP_REQ_ERR);
}

TEST_P(RemoteQueuePair, with_no_other_right_than_the_needed_one_serves_the_request) {
  const ibv_wr_opcode opcode = GetParam();
  const int right = needed_right(opcode) | IBV_ACCESS_LOCAL_WRITE;
  Pair pair(nic(), Ends{.right = {.access = right, .region_access = right}});
  ASSERT_EQ(post(pair.right.qp.get(), Receive{}), 0);
  ASSERT_EQ(post(pair.left.qp.get(), Send{.opcode = opcode,
                                          .list = {pair.left.memory.sge(0, length(opcode))},
                                          .remote = pair.right.memory.remote(8)}),
            0);
  EXPECT_EQ(outcomes(pair.left.cq.get(), 1), successes(0, 1));
}

std::string queue_pair_name(const testing::TestParamInfo<ibv_wr_opcode>& info) {
  return opcode_name(info.param);
}
INSTANTIATE_TEST_SUITE_P(Rights, RemoteQueuePair, testing::ValuesIn(remote_opcodes), queue_pair_name);

class RemoteRegion : public RemoteProtection {};

TEST_F(RemoteRegion, can_be_used_to_its_last_byte_and_by_any_queue_pair_of_its_domain) {
  Memory target(nic().pd.get(), 100);
  for (int i = 0; i < 2; ++i) {
    const Pair pair(nic());
    ASSERT_EQ(post(pair.left.qp.get(), Send{.opcode = IBV_WR_RDMA_WRITE,
                                            .list = {pair.left.memory.sge(0, 100)},
                                            .remote = target.remote()}),
              0);
    EXPECT_EQ(outcomes(pair.left.cq.get(), 1), successes(0, 1));
  }
}

TEST_F(RemoteRegion, can_be_registered_twice_with_rights_of_their_own) {
  Pair pair(nic());
  const auto bytes = pair.right.memory.bytes(0, 64);
  const MemoryRegion readable(
      made(ibv_reg_mr(nic().pd.get(), bytes.data(), 64, IBV_ACCESS_REMOTE_READ), "ibv_reg_mr"));
  ASSERT_NE(readable->rkey, pair.right.memory.remote().rkey);
  Send send{.opcode = IBV_WR_RDMA_WRITE,
            .list = {pair.left.memory.sge(0, 64)},
            .remote = pair.right.memory.remote()};
  ASSERT_EQ(post(pair.left.qp.get(), send), 0);
  EXPECT_EQ(outcomes(pair.left.cq.get(), 1), successes(0, 1));
  send.remote.rkey = readable->rkey;
  ASSERT_EQ(post(pair.left.qp.get(), send), 0);
  EXPECT_THAT(outcomes(pair.left.cq.get(), 1), ElementsAre(Outcome{0, IBV_WC_REM_ACCESS_ERR}));
}

}  // namespace
}  // namespace gdrbench::conformance
