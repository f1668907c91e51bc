#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "path/stages.hpp"

namespace gdrbench::path {
namespace {

void pass(double ms) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
}

TEST(StageClock, CountsWhilePiecesAreInItAndNotBetweenThem) {
  StageClock clock;
  clock.begin();
  pass(20);
  clock.end(1);
  const double busy_s = clock.seconds();
  EXPECT_GE(busy_s, 0.020);
  pass(20);
  EXPECT_EQ(clock.seconds(), busy_s) << "idle";
}

TEST(StageClock, CountsTheTimeOfPiecesTogetherOnce) {
  const double start_us = now_us();
  StageClock clock;
  clock.begin();
  clock.begin();
  pass(20);
  clock.end(1);
  pass(20);
  EXPECT_EQ(clock.seconds(), 0) << "one is still in it";
  clock.end(1);
  EXPECT_GE(clock.seconds(), 0.040);
  EXPECT_LE(clock.seconds(), (now_us() - start_us) * 1e-6);
}

TEST(StageClock, ForgetsWhatWasBeforeAReset) {
  StageClock clock;
  clock.begin();
  pass(20);
  clock.end(1);
  clock.reset();
  EXPECT_EQ(clock.seconds(), 0);
}

}  // namespace
}  // namespace gdrbench::path
