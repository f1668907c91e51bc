#include <gtest/gtest.h>

#include <set>

#include "end.hpp"

namespace gdrbench::conformance {
namespace {

constexpr std::uint64_t before = 0x0102030405060708;

class Atomics : public Conformance {
 protected:
  // Runs one on the right's word at 8, between guards; the value that came back to the left.
  std::uint64_t run(Pair& pair, ibv_wr_opcode opcode, std::uint64_t operand, std::uint64_t swap = 0) {
    pair.left.memory.fill(0, 64, 1);
    EXPECT_EQ(post(pair.left.qp.get(), Send{.opcode = opcode,
                                            .id = 3,
                                            .list = {pair.left.memory.sge(16, 8)},
                                            .remote = pair.right.memory.remote(8),
                                            .operand = operand,
                                            .swap = swap}),
              0);
    const std::vector<ibv_wc> done = take(pair.left.cq.get(), 1);
    EXPECT_EQ(outcomes(done), successes(3, 1));
    if (!done.empty()) {
      EXPECT_EQ(done[0].opcode, completion_opcode(opcode));
    }
    EXPECT_TRUE(pair.left.memory.holds(0, 16, 1)) << "bytes before the result changed";
    return pair.left.memory.word(16);
  }
};

TEST_F(Atomics, fetch_add_returns_the_old_value_and_adds_modulo_2_to_the_64) {
  Pair pair(nic());
  pair.right.memory.fill(0, 64, 2);
  const std::uint64_t guard = pair.right.memory.word(16);
  pair.right.memory.set_word(8, before);
  EXPECT_EQ(run(pair, IBV_WR_ATOMIC_FETCH_AND_ADD, 0x1111), before);
  EXPECT_EQ(pair.right.memory.word(8), before + 0x1111);
  pair.right.memory.set_word(8, ~std::uint64_t{0});
  EXPECT_EQ(run(pair, IBV_WR_ATOMIC_FETCH_AND_ADD, 2), ~std::uint64_t{0});
  EXPECT_EQ(pair.right.memory.word(8), 1);
  EXPECT_TRUE(pair.right.memory.holds(0, 8, 2));
  EXPECT_EQ(pair.right.memory.word(16), guard);
}

TEST_F(Atomics, compare_swap_writes_where_the_values_are_equal_only) {
  Pair pair(nic());
  pair.right.memory.set_word(8, before);
  EXPECT_EQ(run(pair, IBV_WR_ATOMIC_CMP_AND_SWP, before + 1, 77), before);
  EXPECT_EQ(pair.right.memory.word(8), before);
  EXPECT_EQ(run(pair, IBV_WR_ATOMIC_CMP_AND_SWP, before, 77), before);
  EXPECT_EQ(pair.right.memory.word(8), 77);
}

TEST_F(Atomics, of_several_queue_pairs_are_atomic_towards_each_other) {
  constexpr std::size_t each = 48, pairs = 3;
  Memory counter(nic().pd.get(), 8);
  std::vector<std::unique_ptr<Pair>> all;
  for (std::size_t i = 0; i < pairs; ++i) all.push_back(std::make_unique<Pair>(nic()));
  for (std::size_t n = 0; n < each; ++n)
    for (const auto& pair : all)
      ASSERT_EQ(post(pair->left.qp.get(), Send{.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                                               .id = n,
                                               .list = {pair->left.memory.sge(n * 8, 8)},
                                               .remote = counter.remote(),
                                               .operand = 1}),
                0);
  std::set<std::uint64_t> seen;
  for (const auto& pair : all) {
    ASSERT_EQ(outcomes(pair->left.cq.get(), each), successes(0, each));
    for (std::size_t n = 0; n < each; ++n) seen.insert(pair->left.memory.word(n * 8));
  }
  EXPECT_EQ(counter.word(0), each * pairs);
  EXPECT_EQ(seen.size(), each * pairs) << "two requests got the same value";
  EXPECT_EQ(*seen.rbegin(), each * pairs - 1);
}

TEST_F(Atomics, scatter_the_old_value_over_a_list) {
  Pair pair(nic());
  pair.right.memory.set_word(0, before);
  ASSERT_EQ(post(pair.left.qp.get(), Send{.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                                          .list = {pair.left.memory.sge(0, 3), pair.left.memory.sge(103, 5)},
                                          .remote = pair.right.memory.remote()}),
            0);
  ASSERT_EQ(outcomes(pair.left.cq.get(), 1), successes(0, 1));
  const auto word = pair.right.memory.bytes(0, 8);
  EXPECT_TRUE(std::ranges::equal(pair.left.memory.bytes(0, 3), word.first(3)));
  EXPECT_TRUE(std::ranges::equal(pair.left.memory.bytes(103, 5), word.last(5)));
}

}  // namespace
}  // namespace gdrbench::conformance
