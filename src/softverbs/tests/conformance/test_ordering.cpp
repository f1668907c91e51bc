#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "departures.hpp"
#include "end.hpp"

namespace gdrbench::conformance {
namespace {

class Ordering : public Conformance {};

TEST_F(Ordering, of_many_messages_holds_at_both_ends) {
  constexpr std::uint64_t messages = 2000, window = 32, slot = 64;
  Pair pair(nic());
  std::uint64_t sent = 0, taken = 0, received = 0;
  for (std::uint64_t id = 0; id < window; ++id)
    ASSERT_EQ(post(pair.right.qp.get(), Receive{.id = id, .list = {pair.right.memory.sge(id * slot, slot)}}),
              0);
  while (received < messages) {
    for (; sent < messages && sent < received + window; ++sent) {
      pair.left.memory.set_word(sent % window * slot, sent);
      ASSERT_EQ(post(pair.left.qp.get(),
                     Send{.id = sent, .list = {pair.left.memory.sge(sent % window * slot, 8 + sent % 56)}}),
                0);
    }
    const std::vector<ibv_wc> next = take(pair.right.cq.get(), 1);
    ASSERT_EQ(outcomes(next), successes(received, 1));
    ASSERT_EQ(next[0].byte_len, 8 + received % 56);
    ASSERT_EQ(pair.right.memory.word(received % window * slot), received);
    ASSERT_EQ(
        post(pair.right.qp.get(), Receive{.id = received + window,
                                          .list = {pair.right.memory.sge(received % window * slot, slot)}}),
        0);
    ++received;
    // The send of a message that has arrived completes as well, before the slot is used again.
    ASSERT_EQ(outcomes(pair.left.cq.get(), 1), successes(taken++, 1));
  }
  EXPECT_TRUE(is_empty(pair.right.cq.get()));
  EXPECT_TRUE(is_empty(pair.left.cq.get()));
}

TEST_F(Ordering, of_mixed_operations_completes_them_as_posted) {
  constexpr std::uint64_t batches = 40, batch = 16;
  std::mt19937 random(20'240'601);
  Pair pair(nic());
  const ibv_wr_opcode all[] = {
      IBV_WR_SEND,      IBV_WR_SEND_WITH_IMM,        IBV_WR_RDMA_WRITE,        IBV_WR_RDMA_WRITE_WITH_IMM,
      IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP};
  std::uint64_t id = 0;
  for (std::uint64_t n = 0; n < batches; ++n) {
    std::vector<Send> chain;
    std::vector<std::uint32_t> arriving;
    for (std::uint64_t i = 0; i < batch; ++i) {
      const ibv_wr_opcode opcode = all[random() % std::size(all)];
      const std::uint32_t length =
          is_atomic(opcode) ? 8 : static_cast<std::uint32_t>(random() % (2 * nic().mtu()));
      if (takes_receive(opcode)) arriving.push_back(length);
      Send send{.opcode = opcode, .id = id + i, .remote = pair.right.memory.remote(8 * i)};
      if (length > 0) send.list = {pair.left.memory.sge(1024 * i, length)};
      chain.push_back(send);
    }
    for (std::size_t i = 0; i < arriving.size(); ++i)
      ASSERT_EQ(post(pair.right.qp.get(),
                     Receive{.id = i, .list = {pair.right.memory.sge(20'000, 2 * nic().mtu())}}),
                0);
    ASSERT_EQ(post_chain(pair.left.qp.get(), chain).error, 0);
    const std::vector<ibv_wc> done = take(pair.left.cq.get(), batch);
    ASSERT_EQ(outcomes(done), successes(id, batch));
    for (std::uint64_t i = 0; i < batch; ++i) ASSERT_EQ(done[i].opcode, completion_opcode(chain[i].opcode));
    const std::vector<ibv_wc> received = take(pair.right.cq.get(), arriving.size());
    ASSERT_EQ(outcomes(received), successes(0, arriving.size()));
    for (std::size_t i = 0; i < arriving.size(); ++i) ASSERT_EQ(received[i].byte_len, arriving[i]);
    id += batch;
  }
}

TEST_F(Ordering, makes_written_data_visible_before_the_message_behind_it) {
  Pair pair(nic());
  const std::size_t length = pair.left.memory.size();
  for (unsigned round = 1; round <= 20; ++round) {
    pair.left.memory.fill(0, length, round);
    ASSERT_EQ(post(pair.right.qp.get(), Receive{}), 0);
    const std::vector<Send> chain{{.opcode = IBV_WR_RDMA_WRITE,
                                   .list = {pair.left.memory.sge(0, length)},
                                   .remote = pair.right.memory.remote(),
                                   .flags = 0},
                                  {.id = round}};
    ASSERT_EQ(post_chain(pair.left.qp.get(), chain).error, 0);
    ASSERT_EQ(outcomes(pair.right.cq.get(), 1), successes(0, 1));
    ASSERT_TRUE(pair.right.memory.holds(0, length, round));
    ASSERT_EQ(outcomes(pair.left.cq.get(), 1), successes(round, 1));
  }
}

TEST_F(Ordering, makes_written_data_visible_before_the_immediate_data_of_the_same_write) {
  Pair pair(nic());
  const std::size_t length = pair.left.memory.size();
  for (unsigned round = 1; round <= 20; ++round) {
    pair.left.memory.fill(0, length, round);
    ASSERT_EQ(post(pair.right.qp.get(), Receive{}), 0);
    ASSERT_EQ(post(pair.left.qp.get(), Send{.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                                            .id = round,
                                            .list = {pair.left.memory.sge(0, length)},
                                            .remote = pair.right.memory.remote()}),
              0);
    ASSERT_EQ(outcomes(pair.right.cq.get(), 1), successes(0, 1));
    ASSERT_TRUE(pair.right.memory.holds(0, length, round));
    ASSERT_EQ(outcomes(pair.left.cq.get(), 1), successes(round, 1));
  }
}

TEST_F(Ordering, lets_a_read_see_the_write_and_the_atomic_before_it) {
  Pair pair(nic());
  for (std::uint64_t round = 1; round <= 50; ++round) {
    pair.left.memory.set_word(0, round << 32);
    const Remote remote = pair.right.memory.remote();
    const std::vector<Send> chain{
        {.opcode = IBV_WR_RDMA_WRITE, .list = {pair.left.memory.sge(0, 8)}, .remote = remote, .flags = 0},
        {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
         .list = {pair.left.memory.sge(8, 8)},
         .remote = remote,
         .flags = 0,
         .operand = 5},
        {.opcode = IBV_WR_RDMA_READ, .id = round, .list = {pair.left.memory.sge(16, 8)}, .remote = remote}};
    ASSERT_EQ(post_chain(pair.left.qp.get(), chain).error, 0);
    ASSERT_EQ(outcomes(pair.left.cq.get(), 1), successes(round, 1));
    ASSERT_EQ(pair.left.memory.word(8), round << 32);
    ASSERT_EQ(pair.left.memory.word(16), (round << 32) + 5);
  }
}

TEST_F(Ordering, keeps_more_reads_than_may_be_outstanding_in_turn) {
  constexpr std::uint64_t reads = 40;
  Pair pair(nic(), Link{.outstanding = 1});
  pair.right.memory.fill(0, pair.right.memory.size(), 2);
  for (std::uint64_t id = 0; id < reads; ++id)
    ASSERT_EQ(post(pair.left.qp.get(), Send{.opcode = IBV_WR_RDMA_READ,
                                            .id = id,
                                            .list = {pair.left.memory.sge(id * 1000, 1000)},
                                            .remote = pair.right.memory.remote(id * 1000)}),
              0);
  EXPECT_EQ(outcomes(pair.left.cq.get(), reads), successes(0, reads));
  EXPECT_TRUE(
      std::ranges::equal(pair.left.memory.bytes(0, reads * 1000), pair.right.memory.bytes(0, reads * 1000)));
}

// Programs that sleep on one channel for both directions rest on it: the acknowledgement left before the
// answer.
TEST_F(Ordering, completes_a_send_before_the_answer_to_it_arrives) {
  if (!sends_complete_before_their_answers()) GTEST_SKIP() << "an answer may overtake the acknowledgement";
  constexpr std::uint64_t rounds = 2000;
  Pair pair(nic());
  ASSERT_EQ(post(pair.right.qp.get(), Receive{.list = {pair.right.memory.sge(0, 8)}}), 0);
  std::thread answering([&] {
    for (std::uint64_t round = 0; round < rounds; ++round) {
      if (outcomes(pair.right.cq.get(), 1) != successes(0, 1)) return;
      post(pair.right.qp.get(), Receive{.list = {pair.right.memory.sge(0, 8)}});
      post(pair.right.qp.get(), Send{.list = {pair.right.memory.sge(8, 8)}, .flags = 0});
    }
  });
  bool in_order = true;
  for (std::uint64_t round = 0; round < rounds && in_order; ++round) {
    post(pair.left.qp.get(), Receive{.id = 2, .list = {pair.left.memory.sge(0, 8)}});
    post(pair.left.qp.get(), Send{.id = 1, .list = {pair.left.memory.sge(8, 8)}});
    in_order = outcomes(pair.left.cq.get(), 2) == successes(1, 2);
  }
  EXPECT_TRUE(in_order);
  pair.left.qp.reset();
  answering.join();
}

// What perftest's write latency rests on: a reader that spins on the last byte.
TEST_F(Ordering, writes_the_last_byte_of_a_message_last) {
  Pair pair(nic());
  for (const std::size_t length : {std::size_t{2}, std::size_t{8}, std::size_t{33}, std::size_t{1000},
                                   std::size_t{nic().mtu()} + 1, std::size_t{65536}})
    for (unsigned round = 1; round <= 60; ++round) {
      const auto sent = pair.left.memory.bytes(0, length);
      std::memset(sent.data(), static_cast<int>(round), length);
      std::byte* const found = pair.right.memory.bytes(0, length).data();
      std::memset(found, 0, length);
      bool whole = false, seen = false;
      std::atomic<bool> stop{false};
      std::thread reader([&] {
        const std::atomic_ref<std::byte> last(found[length - 1]);
        const auto has_come = [&] {
          return last.load(std::memory_order_acquire) == static_cast<std::byte>(round);
        };
        while (!has_come() && !stop) {
        }
        seen = has_come();
        whole = std::memcmp(found, sent.data(), length) == 0;
      });
      const int error = post(pair.left.qp.get(), Send{.opcode = IBV_WR_RDMA_WRITE,
                                                      .id = round,
                                                      .list = {pair.left.memory.sge(0, length)},
                                                      .remote = pair.right.memory.remote()});
      const std::vector<Outcome> outcome = outcomes(pair.left.cq.get(), 1);
      stop = true;
      reader.join();
      ASSERT_EQ(error, 0);
      ASSERT_EQ(outcome, successes(round, 1));
      ASSERT_TRUE(seen) << "a completion without the data";
      ASSERT_TRUE(whole) << length << " bytes, round " << round;
    }
}

}  // namespace
}  // namespace gdrbench::conformance
