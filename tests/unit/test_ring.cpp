#include <gtest/gtest.h>

#include <memory>

#include "base/ring.hpp"

namespace gdrbench {
namespace {

TEST(Ring, GivesBackInOrderWhatWasPutInWhileItGrowsAndWrapsAround) {
  Ring<int> ring(2);
  int in = 0, out = 0;
  for (int round = 1; round < 40; ++round) {
    for (int i = 0; i < round; ++i) ring.push_back(in++);
    for (int i = 0; i < round / 2; ++i) EXPECT_EQ(ring.take_front(), out++);
    EXPECT_EQ(ring.size(), static_cast<std::size_t>(in - out));
  }
  while (!ring.empty()) EXPECT_EQ(ring.take_front(), out++);
  EXPECT_EQ(out, in);
}

TEST(Ring, MovesAllOfAnotherBehindItsOwn) {
  Ring<int> first, second;
  first.push_back(1);
  for (int i = 2; i < 50; ++i) second.push_back(i);
  first.take_all(second);
  EXPECT_TRUE(second.empty());
  for (int i = 1; i < 50; ++i) EXPECT_EQ(first.take_front(), i);
  EXPECT_TRUE(first.empty());
}

TEST(Ring, LetsGoOfWhatHasLeftIt) {
  Ring<std::shared_ptr<int>> ring;
  const auto kept = std::make_shared<int>(5);
  ring.push_back(kept);
  ring.pop_front();
  EXPECT_EQ(kept.use_count(), 1);
}

}  // namespace
}  // namespace gdrbench
