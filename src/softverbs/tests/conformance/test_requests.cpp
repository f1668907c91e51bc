#include <gmock/gmock.h>

#include <algorithm>

#include "departures.hpp"
#include "end.hpp"

namespace gdrbench::conformance {
namespace {

class Requests : public Conformance {
 protected:
  // What a list may hold here: the device's bound, and 16 at most.
  std::uint32_t longest_list() const {
    return static_cast<std::uint32_t>(std::min(nic().attributes.max_sge, 16));
  }
  static std::uint32_t inline_bytes(const End& end) {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    succeed(ibv_query_qp(end.qp.get(), &attr, IBV_QP_CAP, &init), "ibv_query_qp");
    return init.cap.max_inline_data;
  }
};

// `count` elements of uneven lengths, apart from each other, last place first.
std::vector<ibv_sge> scattered(const Memory& memory, std::size_t count) {
  std::vector<ibv_sge> list;
  for (std::size_t i = count; i-- > 0;) list.push_back(memory.sge(i * 3000 + i, 100 + i * 137));
  return list;
}

std::vector<std::byte> gathered(std::span<const ibv_sge> list) {
  std::vector<std::byte> bytes;
  for (const ibv_sge& sge : list) {
    const auto* const first = reinterpret_cast<const std::byte*>(sge.addr);
    bytes.insert(bytes.end(), first, first + sge.length);
  }
  return bytes;
}

TEST_F(Requests, take_inline_data_when_they_are_posted_and_ask_for_no_key) {
  Pair pair(nic(), {.inline_bytes = 64});
  const std::uint32_t most = inline_bytes(pair.left);
  ASSERT_GE(most, 64);
  for (const std::uint32_t length : {1U, 63U, most}) {
    SCOPED_TRACE(length);
    pair.left.memory.fill(0, length, ours);
    ibv_sge source = pair.left.memory.sge(0, length);
    source.lkey ^= 0x5500;
    // No receive is there yet, so the request must outlast what its memory held.
    ASSERT_EQ(post(pair.left.qp.get(), Send{.list = {source}, .flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE}),
              0);
    pair.left.memory.fill(0, length, theirs);
    ASSERT_EQ(post(pair.right.qp.get(), Receive{.list = {pair.right.memory.sge(8, length)}}), 0);
    ASSERT_EQ(outcomes(pair.left.cq.get(), 1), successes(0, 1));
    ASSERT_EQ(outcomes(pair.right.cq.get(), 1), successes(0, 1));
    EXPECT_TRUE(pair.right.memory.holds(8, length, ours));
  }
}

TEST_F(Requests, gather_inline_data_from_a_list) {
  Pair pair(nic(), {.list_length = 3, .inline_bytes = 60});
  pair.left.memory.fill(0, 1024, ours);
  const std::vector<ibv_sge> list{pair.left.memory.sge(500, 7), pair.left.memory.sge(3, 20),
                                  pair.left.memory.sge(100, 33)};
  ASSERT_EQ(post(pair.left.qp.get(), Send{.opcode = IBV_WR_RDMA_WRITE,
                                          .list = list,
                                          .remote = pair.right.memory.remote(),
                                          .flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE}),
            0);
  ASSERT_EQ(outcomes(pair.left.cq.get(), 1), successes(0, 1));
  EXPECT_TRUE(std::ranges::equal(pair.right.memory.bytes(0, 60), gathered(list)));
}

TEST_F(Requests, with_more_inline_data_than_the_queue_pair_holds_are_refused) {
  const Pair pair(nic(), {.inline_bytes = 32});
  const std::uint32_t most = inline_bytes(pair.left);
  const Send request{.list = {pair.left.memory.sge(0, most + 1)},
                     .flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE};
  const Posted posted = post_chain(pair.left.qp.get(), std::span(&request, 1));
  EXPECT_NE(posted.error, 0);
  EXPECT_EQ(posted.accepted, 0);
}

TEST_F(Requests, gather_and_scatter_over_the_longest_lists) {
  const std::uint32_t most = longest_list();
  for (const ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    SCOPED_TRACE(opcode_name(opcode));
    Pair pair(nic(), {.list_length = most});
    pair.left.memory.fill(0, pair.left.memory.size(), ours);
    pair.right.memory.fill(0, pair.right.memory.size(), theirs);
    const std::vector<ibv_sge> list = scattered(pair.left.memory, most);
    const std::size_t total = gathered(list).size();
    // The receiver's list has other cuts: a first element of one byte, a last one with room to spare.
    std::vector<ibv_sge> receive_list = scattered(pair.right.memory, most);
    receive_list.front().length = 1;
    receive_list.back().length = static_cast<std::uint32_t>(total);
    receive_list.back().addr = pair.right.memory.remote(pair.right.memory.size() - total).address;
    const std::vector<std::byte> read = gathered(std::vector{pair.right.memory.sge(77, total)});

    ASSERT_EQ(post(pair.right.qp.get(), Receive{.list = receive_list}), 0);
    ASSERT_EQ(post(pair.left.qp.get(),
                   Send{.opcode = opcode, .list = list, .remote = pair.right.memory.remote(77)}),
              0);
    ASSERT_EQ(outcomes(pair.left.cq.get(), 1), successes(0, 1));
    if (opcode == IBV_WR_RDMA_READ) {
      EXPECT_EQ(gathered(list), read);
      continue;
    }
    const std::vector<std::byte> sent = gathered(list);
    if (opcode == IBV_WR_RDMA_WRITE) {
      EXPECT_TRUE(std::ranges::equal(pair.right.memory.bytes(77, total), sent));
    } else {
      ASSERT_EQ(outcomes(pair.right.cq.get(), 1), successes(0, 1));
      std::vector<std::byte> received = gathered(receive_list);
      received.resize(total);
      EXPECT_EQ(received, sent);
    }
  }
}

TEST_F(Requests, with_lists_longer_than_the_queue_pair_holds_are_refused) {
  const Pair pair(nic(), {.list_length = 2});
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(pair.left.qp.get(), &attr, IBV_QP_CAP, &init), 0);
  const Send send{.list = std::vector(init.cap.max_send_sge + 1, pair.left.memory.sge(0, 1))};
  const Receive receive{.list = std::vector(init.cap.max_recv_sge + 1, pair.left.memory.sge(0, 1))};
  for (const Posted posted : {post_chain(pair.left.qp.get(), std::span(&send, 1)),
                              post_chain(pair.left.qp.get(), std::span(&receive, 1))}) {
    EXPECT_NE(posted.error, 0);
    EXPECT_EQ(posted.accepted, 0);
  }
}

TEST_F(Requests, complete_only_where_they_are_signaled) {
  const Pair pair(nic());
  for (std::uint64_t id = 0; id < 9; ++id)
    ASSERT_EQ(post(pair.left.qp.get(), Send{.opcode = IBV_WR_RDMA_WRITE,
                                            .id = id,
                                            .list = {pair.left.memory.sge(0, 8)},
                                            .remote = pair.right.memory.remote(),
                                            .flags = id % 4 == 0 ? signaled : unsignaled}),
              0);
  EXPECT_THAT(outcomes(pair.left.cq.get(), 3), testing::ElementsAre(Outcome{0}, Outcome{4}, Outcome{8}));
  EXPECT_TRUE(is_empty(pair.left.cq.get()));
}

TEST_F(Requests, all_complete_where_the_queue_pair_says_so) {
  const Pair pair(nic(), {.signal_all = true});
  for (std::uint64_t id = 0; id < 3; ++id)
    ASSERT_EQ(post(pair.left.qp.get(), Send{.opcode = IBV_WR_RDMA_WRITE,
                                            .id = id,
                                            .list = {pair.left.memory.sge(0, 8)},
                                            .remote = pair.right.memory.remote(),
                                            .flags = 0}),
              0);
  EXPECT_EQ(outcomes(pair.left.cq.get(), 3), successes(0, 3));
}

TEST_F(Requests, that_fail_complete_even_when_unsignaled) {
  const Pair pair(nic());
  ibv_sge source = pair.left.memory.sge(0, 8);
  source.lkey ^= 0x5500;
  ASSERT_EQ(post(pair.left.qp.get(), Send{.id = 4, .list = {source}, .flags = 0}), 0);
  EXPECT_THAT(outcomes(pair.left.cq.get(), 1), testing::ElementsAre(Outcome{4, unusable_lkey()}));
}

TEST_F(Requests, with_a_fence_wait_for_the_reads_and_atomics_before_them) {
  constexpr std::size_t length = 1 << 18, word = length, landing = length + 8;
  Pair pair(nic(), {.memory_bytes = 1 << 19});
  auto& [left, right] = pair;
  for (unsigned round = 1; round <= 10; ++round) {
    SCOPED_TRACE(round);
    left.memory.fill(0, length + 8, ours);
    right.memory.fill(0, length + 8, theirs + round);
    // What comes last of the read, and what the atomic behind it brings.
    const std::vector<std::byte> original = gathered(std::vector{right.memory.sge(length - 8, 16)});
    ASSERT_EQ(post(right.qp.get(), Receive{.list = {right.memory.sge(landing, 16)}}), 0);
    const std::vector<Send> chain{
        {.opcode = IBV_WR_RDMA_READ,
         .id = 0,
         .list = {left.memory.sge(0, length)},
         .remote = right.memory.remote()},
        {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
         .id = 1,
         .list = {left.memory.sge(word, 8)},
         .remote = right.memory.remote(word)},
        {.id = 2, .list = {left.memory.sge(length - 8, 16)}, .flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE}};
    ASSERT_EQ(post_chain(left.qp.get(), chain).error, 0);
    ASSERT_EQ(outcomes(left.cq.get(), 3), successes(0, 3));
    ASSERT_EQ(outcomes(right.cq.get(), 1), successes(0, 1));
    EXPECT_TRUE(std::ranges::equal(right.memory.bytes(landing, 16), original));
  }
}

}  // namespace
}  // namespace gdrbench::conformance
