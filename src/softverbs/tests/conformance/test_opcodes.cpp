#include <arpa/inet.h>
#include <gmock/gmock.h>

#include <tuple>

#include "end.hpp"

namespace gdrbench::conformance {
namespace {

using testing::ElementsAre;

constexpr std::uint32_t immediate = 0x01020384;

struct Size {
  const char* name;
  std::uint32_t mtus;  ///< path MTUs, and
  int more;            ///< bytes
};
constexpr Size sizes[] = {{"0", 0, 0},
                          {"1", 0, 1},
                          {"333", 0, 333},
                          {"MTU_minus_1", 1, -1},
                          {"MTU", 1, 0},
                          {"MTU_plus_1", 1, 1},
                          {"1_MiB_plus_1", 0, (1 << 20) + 1}};
constexpr ibv_wr_opcode reliable_opcodes[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
                                              IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ};
constexpr ibv_wr_opcode unreliable_opcodes[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
                                                IBV_WR_RDMA_WRITE_WITH_IMM};

class Opcode : public Conformance,
               public testing::WithParamInterface<std::tuple<ibv_qp_type, ibv_wr_opcode, Size>> {};

TEST_P(Opcode, moves_exactly_its_bytes_and_completes_at_the_ends_that_it_concerns) {
  const auto [type, opcode, size] = GetParam();
  const std::size_t length = size.mtus * nic().mtu() + static_cast<std::size_t>(size.more);
  constexpr std::size_t source_lead = 3, target_lead = 5, tail = 7;
  Pair pair(nic(), {.type = type, .memory_bytes = length + target_lead + tail});
  auto& [left, right] = pair;
  left.memory.fill(0, left.memory.size(), ours);
  right.memory.fill(0, right.memory.size(), theirs);
  const bool reads = opcode == IBV_WR_RDMA_READ;
  Memory& source = reads ? right.memory : left.memory;
  Memory& target = reads ? left.memory : right.memory;
  const std::size_t local_lead = reads ? target_lead : source_lead;
  const std::size_t remote_lead = reads ? source_lead : target_lead;

  ASSERT_EQ(post(right.qp.get(), Receive{.id = 7, .list = {right.memory.sge(target_lead, length)}}), 0);
  Send send{.opcode = opcode, .id = 9, .remote = right.memory.remote(remote_lead), .immediate = immediate};
  if (length > 0) send.list = {left.memory.sge(local_lead, length)};
  ASSERT_EQ(post(left.qp.get(), send), 0);
  if (type == IBV_QPT_UC && !takes_receive(opcode)) {
    // Its completion says that it has left. A message behind it shows that it has come.
    ASSERT_EQ(post(left.qp.get(), Send{.flags = unsignaled}), 0);
    ASSERT_EQ(outcomes(right.cq.get(), 1), successes(7, 1));
  }

  const std::vector<ibv_wc> sent = take(left.cq.get(), 1);
  ASSERT_EQ(outcomes(sent), successes(9, 1));
  EXPECT_EQ(sent[0].opcode, completion_opcode(opcode));
  EXPECT_EQ(sent[0].qp_num, left.number());
  if (reads) {
    EXPECT_EQ(sent[0].byte_len, length);
  }

  if (takes_receive(opcode)) {
    const std::vector<ibv_wc> received = take(right.cq.get(), 1);
    ASSERT_EQ(outcomes(received), successes(7, 1));
    EXPECT_EQ(received[0].opcode, is_send(opcode) ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM);
    EXPECT_EQ(received[0].byte_len, length);
    EXPECT_EQ(received[0].qp_num, right.number());
    EXPECT_EQ(received[0].wc_flags & IBV_WC_WITH_IMM, unsigned{has_immediate(opcode)} * IBV_WC_WITH_IMM);
    if (has_immediate(opcode)) {
      EXPECT_EQ(ntohl(received[0].imm_data), immediate);
    }
  }
  EXPECT_TRUE(is_empty(left.cq.get()));
  EXPECT_TRUE(is_empty(right.cq.get()));

  const std::size_t source_offset = reads ? remote_lead : local_lead;
  const std::vector<std::byte> whole_source = pattern(source.size(), reads ? theirs : ours);
  std::vector<std::byte> expected = pattern(target.size(), reads ? ours : theirs);
  std::copy_n(whole_source.begin() + static_cast<std::ptrdiff_t>(source_offset), length,
              expected.begin() + target_lead);
  const auto found = target.bytes(0, target.size());
  EXPECT_TRUE(std::equal(found.begin(), found.end(), expected.begin()));
  EXPECT_TRUE(source.is_untouched(reads ? theirs : ours));
}

std::string transfer_name(const testing::TestParamInfo<Opcode::ParamType>& info) {
  return opcode_name(std::get<1>(info.param)) + "_of_" + std::get<2>(info.param).name;
}
INSTANTIATE_TEST_SUITE_P(Transfers, Opcode,
                         testing::Combine(testing::Values(IBV_QPT_RC), testing::ValuesIn(reliable_opcodes),
                                          testing::ValuesIn(sizes)),
                         transfer_name);
INSTANTIATE_TEST_SUITE_P(UnreliableTransfers, Opcode,
                         testing::Combine(testing::Values(IBV_QPT_UC), testing::ValuesIn(unreliable_opcodes),
                                          testing::ValuesIn(sizes)),
                         transfer_name);

class Opcodes : public Conformance {};

TEST_F(Opcodes, of_no_bytes_need_no_valid_rkey) {
  const Pair pair(nic());
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    SCOPED_TRACE(opcode_name(opcode));
    ASSERT_EQ(post(pair.left.qp.get(), Send{.opcode = opcode, .remote = {.address = 1, .rkey = 0x5a5a5a}}),
              0);
    EXPECT_EQ(outcomes(pair.left.cq.get(), 1), successes(0, 1));
  }
}

TEST_F(Opcodes, work_both_ways_at_once) {
  Pair pair(nic());
  const std::size_t length = nic().mtu() * 3 + 1, half = pair.left.memory.size() / 2;
  pair.left.memory.fill(0, length, ours);
  pair.right.memory.fill(0, length, theirs);
  for (const auto& [from, to] : {std::pair(&pair.left, &pair.right), std::pair(&pair.right, &pair.left)}) {
    ASSERT_EQ(post(to->qp.get(), Receive{.id = 1, .list = {to->memory.sge(half, length)}}), 0);
    ASSERT_EQ(post(from->qp.get(), Send{.id = 1, .list = {from->memory.sge(0, length)}}), 0);
  }
  for (End* end : {&pair.left, &pair.right})
    EXPECT_THAT(outcomes(end->cq.get(), 2), ElementsAre(Outcome{1}, Outcome{1}));
  EXPECT_TRUE(pair.left.memory.holds(half, length, theirs));
  EXPECT_TRUE(pair.right.memory.holds(half, length, ours));
}

TEST_F(Opcodes, reach_a_queue_pair_that_is_connected_to_itself) {
  End end(nic());
  connect(end, end.number(), {.psn = 5, .remote_psn = 5});
  end.memory.fill(0, 100, ours);
  ASSERT_EQ(post(end.qp.get(), Receive{.id = 1, .list = {end.memory.sge(200, 100)}}), 0);
  ASSERT_EQ(post(end.qp.get(), Send{.id = 1, .list = {end.memory.sge(0, 100)}}), 0);
  EXPECT_THAT(outcomes(end.cq.get(), 2), ElementsAre(Outcome{1}, Outcome{1}));
  EXPECT_TRUE(end.memory.holds(200, 100, ours));
}

}  // namespace
}  // namespace gdrbench::conformance
