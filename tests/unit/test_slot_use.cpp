#include <gtest/gtest.h>

#include <map>

#include "measure/payload.hpp"

namespace gdrbench::measure {
namespace {

Case bandwidth() {
  return {.suite = Suite::bandwidth};
}

TEST(MessageInSlot, IsTheLastRoundTripOfAPingPong) {
  const path::Layout one_slot{.size = 8, .stride = 64};
  EXPECT_EQ(used_slots({}, one_slot, {.iterations = 5, .warmup = 2}, 0), 1U);
  EXPECT_EQ(message_in_slot({}, one_slot, {.iterations = 5, .warmup = 2}, 0, 0), "message 7 of 7");
}

TEST(MessageInSlot, IsOfTheWarmUpWhereNoLaterMessageCame) {
  const path::Layout layout{.size = 8, .stride = 64, .slots = 10};
  const RunRequest request{.iterations = 3, .warmup = 5};
  EXPECT_EQ(used_slots(bandwidth(), layout, request, 0), 5U);
  EXPECT_EQ(message_in_slot(bandwidth(), layout, request, 0, 2), "message 3 of 3");
  EXPECT_EQ(message_in_slot(bandwidth(), layout, request, 0, 3), "warm-up message 4 of 5");
}

TEST(MessageInSlot, IsCountedInItsLane) {
  const path::Layout layout{.size = 8, .stride = 64, .slots = 4, .queue_pairs = 2};
  const RunRequest request{.iterations = 7};
  EXPECT_EQ(used_slots(bandwidth(), layout, request, 0), 4U);
  EXPECT_EQ(used_slots(bandwidth(), layout, request, 1), 3U);
  EXPECT_EQ(message_in_slot(bandwidth(), layout, request, 1, 2), "message 3 of 3 on queue pair 1");
}

TEST(MessageInSlot, IsWhatARunOverTheSlotsLeavesThere) {
  for (const std::uint64_t slots : {1, 3, 4, 7})
    for (std::uint64_t warmup = 0; warmup < 10; ++warmup)
      for (std::uint64_t iterations = 1; iterations < 20; ++iterations) {
        std::map<std::uint64_t, std::string> left;
        for (std::uint64_t i = 0; i < warmup; ++i)
          left[i % slots] = "warm-up message " + std::to_string(i + 1) + " of " + std::to_string(warmup);
        for (std::uint64_t i = 0; i < iterations; ++i)
          left[i % slots] = "message " + std::to_string(i + 1) + " of " + std::to_string(iterations);
        const path::Layout layout{.size = 8, .stride = 64, .slots = slots};
        const RunRequest request{.iterations = iterations, .warmup = warmup};
        ASSERT_EQ(used_slots(bandwidth(), layout, request, 0), left.size());
        for (const auto& [slot, message] : left)
          ASSERT_EQ(message_in_slot(bandwidth(), layout, request, 0, slot), message)
              << warmup << " + " << iterations << " over " << slots;
      }
}

}  // namespace
}  // namespace gdrbench::measure
