#include <gtest/gtest.h>

#include "measure/arrival_observer.hpp"

namespace gdrbench::measure {
namespace {

constexpr std::byte brought{0x5a}, turned{0xa5};

TEST(ArrivalObserverOfHostMemory, counts_what_arrives_and_turns_it_over_for_the_next_message) {
  std::byte tail = turned;
  const auto observer = make_arrival_observer(MemoryKind::host, 0);
  observer->open(&tail, brought, 2);
  EXPECT_EQ(observer->seen(), 0U);
  for (std::uint64_t message = 1; message <= 2; ++message) {
    tail = brought;
    EXPECT_EQ(observer->seen(), message);
    EXPECT_EQ(tail, turned);
    EXPECT_EQ(observer->seen(), message) << "one message was counted twice";
  }
  EXPECT_EQ(observer->describe().kind, "cpu");
}

TEST(ArrivalObserverOfHostMemory, leaves_alone_what_comes_after_the_last_message_or_after_it_was_closed) {
  std::byte tail = turned;
  const auto observer = make_arrival_observer(MemoryKind::host, 0);
  observer->open(&tail, brought, 1);
  tail = brought;
  EXPECT_EQ(observer->seen(), 1U);
  tail = brought;
  EXPECT_EQ(observer->seen(), 1U);
  EXPECT_EQ(tail, brought);

  observer->open(&tail, turned, 5);
  observer->close();
  tail = turned;
  EXPECT_EQ(observer->seen(), 0U);
  EXPECT_EQ(tail, turned);
}

TEST(ArrivalObserverOfHostMemory, counts_anew_when_it_is_opened_again) {
  std::byte tail = turned;
  const auto observer = make_arrival_observer(MemoryKind::host, 0);
  observer->open(&tail, brought, 3);
  tail = brought;
  EXPECT_EQ(observer->seen(), 1U);
  observer->open(&tail, brought, 3);
  EXPECT_EQ(observer->seen(), 0U);
}

}  // namespace
}  // namespace gdrbench::measure
