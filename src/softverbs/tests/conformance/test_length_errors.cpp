#include <gmock/gmock.h>
#include <sys/mman.h>

#include "departures.hpp"
#include "end.hpp"

namespace gdrbench::conformance {
namespace {

using testing::ElementsAre;

class LengthErrors : public Conformance {};

TEST_F(LengthErrors, of_a_receive_that_is_too_short_show_at_both_ends) {
  constexpr std::size_t room = 64;
  for (const std::size_t length : {room + 1, std::size_t{nic().mtu()} * 2 + 1}) {
    SCOPED_TRACE(length);
    Pair pair(nic(), {.list_length = 2});
    pair.right.memory.fill(0, pair.right.memory.size(), 2);
    // The room is that of the whole list.
    ASSERT_EQ(post(pair.right.qp.get(),
                   Receive{.id = 3,
                           .list = {pair.right.memory.sge(0, room - 8), pair.right.memory.sge(room - 8, 8)}}),
              0);
    ASSERT_EQ(post(pair.left.qp.get(), Send{.id = 4, .list = {pair.left.memory.sge(0, length)}}), 0);
    EXPECT_THAT(outcomes(pair.left.cq.get(), 1), ElementsAre(Outcome{4, send_to_short_receive()}));
    EXPECT_THAT(outcomes(pair.right.cq.get(), 1), ElementsAre(Outcome{3, short_receive()}));
    EXPECT_TRUE(pair.right.memory.is_untouched(2, room));
    EXPECT_EQ(pair.left.state(), IBV_QPS_ERR);
    EXPECT_EQ(pair.right.state(), IBV_QPS_ERR);
  }
}

TEST_F(LengthErrors, do_not_come_from_a_receive_without_a_buffer_for_a_message_without_bytes) {
  const Pair pair(nic());
  ASSERT_EQ(post(pair.right.qp.get(), Receive{}), 0);
  ASSERT_EQ(post(pair.left.qp.get(), Send{}), 0);
  EXPECT_EQ(outcomes(pair.left.cq.get(), 1), successes(0, 1));
  EXPECT_EQ(outcomes(pair.right.cq.get(), 1), successes(0, 1));
}

TEST_F(LengthErrors, of_a_message_beyond_the_port_s_largest_are_local) {
  constexpr std::uint32_t elements = 16;
  const std::uint64_t largest = nic().port.max_msg_sz;
  const std::size_t share = static_cast<std::size_t>(largest / elements + 1);
  if (nic().attributes.max_sge < static_cast<int>(elements)) GTEST_SKIP() << "lists are too short to try";
  if (largest > std::uint64_t{1} << 31) GTEST_SKIP() << "the port sets no bound";
  // Every element is the same memory.
  void* const memory = mmap(nullptr, share, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  {
    const MemoryRegion region(made(ibv_reg_mr(nic().pd.get(), memory, share, all_access), "ibv_reg_mr"));
    const Pair pair(nic(), {.list_length = elements});
    const ibv_sge sge{.addr = reinterpret_cast<std::uintptr_t>(memory),
                      .length = static_cast<std::uint32_t>(share),
                      .lkey = region->lkey};
    ASSERT_EQ(post(pair.right.qp.get(), Receive{.list = std::vector(elements, sge)}), 0);
    // It may be refused at once, too.
    if (post(pair.left.qp.get(), Send{.id = 1, .list = std::vector(elements, sge)}) == 0) {
      EXPECT_THAT(outcomes(pair.left.cq.get(), 1), ElementsAre(Outcome{1, oversized_message()}));
    }
  }
  munmap(memory, share);
}

TEST_F(LengthErrors, of_an_atomic_that_is_not_aligned_make_it_an_invalid_request) {
  for (const ibv_wr_opcode opcode : {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP}) {
    SCOPED_TRACE(opcode_name(opcode));
    Pair pair(nic());
    pair.right.memory.fill(0, pair.right.memory.size(), 2);
    const Send send{.opcode = opcode,
                    .id = 1,
                    .list = {pair.left.memory.sge(0, 8)},
                    .remote = pair.right.memory.remote(4),
                    .operand = pair.right.memory.word(4)};
    if (responder_sees_misaligned_atomics()) {
      ASSERT_EQ(post(pair.left.qp.get(), send), 0);
      EXPECT_THAT(outcomes(pair.left.cq.get(), 1), ElementsAre(Outcome{1, IBV_WC_REM_INV_REQ_ERR}));
    } else {
      EXPECT_EQ(post(pair.left.qp.get(), send), EINVAL);
    }
    EXPECT_TRUE(pair.right.memory.is_untouched(2));
  }
}

}  // namespace
}  // namespace gdrbench::conformance
