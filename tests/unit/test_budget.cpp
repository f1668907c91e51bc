#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gdrbench/error.hpp"
#include "session/budget.hpp"

namespace gdrbench::session {
namespace {

Case on(Path path, MemoryKind memory = MemoryKind::host) {
  Case c;
  c.path = path;
  c.memory = memory;
  return c;
}

std::shared_ptr<Limits> limits(std::uint64_t bytes, std::uint32_t queue_pairs) {
  return std::make_shared<Limits>(bytes, queue_pairs);
}

TEST(Budget, CasesOpenAtTheSameTimeShareThePayload) {
  Budget budget(limits(100, 8));
  const auto tcp = budget.reserve(on(Path::tcp), 80);
  const auto rdma = budget.reserve(on(Path::rdma), 60);
  EXPECT_EQ(budget.used().payload_bytes, 80);
  EXPECT_EQ(budget.used().queue_pairs, 2);
}

TEST(Budget, ALargerCaseCostsNewBuffersBesideThoseInUse) {
  Budget budget(limits(100, 8));
  auto small = budget.reserve(on(Path::tcp), 40);
  EXPECT_THROW(budget.reserve(on(Path::tcp), 61), Unavailable);
  const auto large = budget.reserve(on(Path::tcp), 60);
  EXPECT_EQ(budget.used().payload_bytes, 100);
  small.reset();
  EXPECT_EQ(budget.used().payload_bytes, 60);
}

TEST(Budget, AnotherKindOfMemoryCostsNewBuffersAndBaselinesAreOnTheHost) {
  Budget budget(limits(100, 8));
  const auto gpu = budget.reserve(on(Path::gdr, MemoryKind::cuda), 50);
  EXPECT_THROW(budget.reserve(on(Path::tcp, MemoryKind::cuda_vmm), 51), Unavailable);
  const auto baseline = budget.reserve(on(Path::tcp_wire, MemoryKind::cuda), 30);
  EXPECT_EQ(budget.used().payload_bytes, 80);
  const auto host = budget.reserve(on(Path::tcp, MemoryKind::host), 30);
  EXPECT_EQ(budget.used().payload_bytes, 80);
}

TEST(Budget, BuffersWithoutAnOpenCaseMakeRoom) {
  Budget budget(limits(100, 8));
  budget.reserve(on(Path::tcp), 60);
  EXPECT_EQ(budget.used().payload_bytes, 60);  // kept for the next case
  const auto larger = budget.reserve(on(Path::tcp), 100);
  EXPECT_EQ(budget.used().payload_bytes, 100);
}

TEST(Budget, BounceMemoryCountsForEveryOpenCaseUntilItCloses) {
  Budget budget(limits(100, 8));
  auto first = budget.reserve(on(Path::tcp), 40, 25);
  const auto second = budget.reserve(on(Path::rdma), 40, 25);
  EXPECT_EQ(budget.used().payload_bytes, 40);
  EXPECT_EQ(budget.used().bounce_bytes, 50);
  EXPECT_THROW(budget.reserve(on(Path::tcp), 40, 11), Unavailable);
  EXPECT_THROW(budget.reserve(on(Path::tcp), 40, ~std::uint64_t{0}), Unavailable);
  EXPECT_NO_THROW(budget.reserve(on(Path::tcp), 40, 10));
  first.reset();
  EXPECT_EQ(budget.used().bounce_bytes, 25);
}

TEST(Budget, BuffersWithoutAnOpenCaseMakeRoomForBounceMemory) {
  Budget budget(limits(100, 8));
  budget.reserve(on(Path::tcp), 90);
  const auto staged = budget.reserve(on(Path::tcp), 10, 90);
  EXPECT_EQ(budget.used().bytes(), 100);
}

TEST(Budget, QueuePairsAreGivenBack) {
  Budget budget(limits(100, 2));
  auto first = budget.reserve(on(Path::tcp), 1);
  auto second = budget.reserve(on(Path::tcp), 1);
  EXPECT_THROW(budget.reserve(on(Path::tcp), 1), Unavailable);
  first.reset();
  EXPECT_NO_THROW(budget.reserve(on(Path::tcp), 1));
}

TEST(Budget, TheLargestNumbersDoNotWrapAround) {
  Budget budget(limits(100, 8));
  const auto some = budget.reserve(on(Path::tcp), 50);
  EXPECT_THROW(budget.reserve(on(Path::rdma), ~std::uint64_t{0}), Unavailable);
  Case many = on(Path::tcp);
  many.queue_pairs = ~std::uint32_t{0};
  EXPECT_THROW(budget.reserve(many, 1), Unavailable);
}

// Buffers of host memory from the real allocator: whole pages.
TEST(Budget, WhatARunnerReallyTookCountsAgainstTheLimit) {
  const Case c = on(Path::tcp);
  const auto take = [](Budget& budget, std::uint64_t bytes) {
    budget.payload().outgoing = std::make_shared<Buffer>(BufferOptions{.length = bytes});
    budget.payload().incoming = std::make_shared<Buffer>(BufferOptions{.length = bytes});
  };
  Budget enough(limits(8192, 8));
  const auto hold = enough.reserve(c, 4096);
  take(enough, 4096);
  EXPECT_NO_THROW(enough.settle());
  EXPECT_EQ(enough.used().payload_bytes, 8192);

  Budget tight(limits(8191, 8));
  auto other = tight.reserve(c, 4096);
  take(tight, 4096);
  EXPECT_THROW(tight.settle(), Unavailable);
  EXPECT_FALSE(tight.payload().outgoing);
  other.reset();
  EXPECT_EQ(tight.used().payload_bytes, 0);
}

TEST(Budget, SessionsOfOneVisitShareItsLimitsAndNotTheirPayload) {
  const auto shared = limits(100, 8);
  Budget first(shared), second(shared);
  const auto one = first.reserve(on(Path::tcp), 60);
  EXPECT_THROW(second.reserve(on(Path::tcp), 60), Unavailable);
  auto two = second.reserve(on(Path::tcp), 40, 0, 7);
  EXPECT_EQ(first.used().payload_bytes, 100);
  EXPECT_THROW(first.reserve(on(Path::tcp), 60), Unavailable) << "eight queue pairs are in use";
  two.reset();
  EXPECT_NO_THROW(first.reserve(on(Path::tcp), 60));
}

TEST(Budget, ManyRanksTakeQueuePairsForEachOfTheOthers) {
  Budget budget(limits(100, 8));
  Case c = on(Path::tcp);
  c.queue_pairs = 3;
  EXPECT_THROW(budget.reserve(c, 1, 0, 3), Unavailable);
  const auto hold = budget.reserve(c, 1, 0, 2);
  EXPECT_EQ(budget.used().queue_pairs, 6);
  c.queue_pairs = ~std::uint32_t{0};
  EXPECT_THROW(budget.reserve(c, 1, 0, ~std::uint32_t{0}), Unavailable);
}

TEST(Budget, TheDefaultLimitIsPartOfThisMachinesMemory) {
  EXPECT_GT(half_of_available_memory(), 1 << 20);
}

}  // namespace
}  // namespace gdrbench::session
