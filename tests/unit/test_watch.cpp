#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "gdrbench/error.hpp"
#include "gdrbench/interrupt.hpp"
#include "measure/watch.hpp"

namespace gdrbench::measure {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

struct Pipe {
  Pipe() {
    std::array<int, 2> fds{};
    if (::pipe(fds.data()) != 0) throw std::runtime_error("pipe");
    reader = FileDescriptor(fds[0]);
    writer = FileDescriptor(fds[1]);
  }
  void speak() const { ASSERT_EQ(::write(writer.get(), "x", 1), 1); }
  FileDescriptor reader;
  FileDescriptor writer;
};

// Turns that idle() allows before it ends the loop, at most `limit`.
int turns_until_end(Watch& watch, int limit, std::chrono::microseconds turn = 0us) {
  for (int turns = 0; turns < limit; ++turns) {
    if (!watch.idle()) return turns;
    if (turn > 0us) std::this_thread::sleep_for(turn);
  }
  return limit;
}

TEST(Watch, ThatHasADeadlineEndsTheLoopThenHoweverMuchMoves) {
  const Pipe pipe;
  Watch watch(pipe.reader.get(), 10s, steady_clock::now() + 30ms);
  const auto turn = [&] {
    watch.active();
    return watch.check();
  };
  EXPECT_TRUE(turn());
  std::this_thread::sleep_for(60ms);
  EXPECT_THROW(turn(), OutOfTime);
}

TEST(Watch, ASilentChannelLetsTheLoopGoOn) {
  const Pipe pipe;
  Watch watch(pipe.reader.get(), 10s);
  EXPECT_EQ(turns_until_end(watch, 100'000), 100'000);
  EXPECT_TRUE(watch.check());
}

TEST(Watch, AWordOnTheChannelEndsTheLoopWithin1024Turns) {
  const Pipe pipe;
  Watch watch(pipe.reader.get(), 10s);
  ASSERT_EQ(turns_until_end(watch, 8), 8);  // the first look is over
  pipe.speak();
  EXPECT_LE(turns_until_end(watch, 5000), 1024);
  EXPECT_FALSE(watch.check());
}

TEST(Watch, AHungUpChannelEndsTheLoop) {
  Pipe pipe;
  Watch watch(pipe.reader.get(), 10s);
  pipe.writer = FileDescriptor();
  EXPECT_LE(turns_until_end(watch, 5000), 1024);
  EXPECT_FALSE(watch.check());
}

TEST(Watch, ALoopOfSlowTurnsEndsWithin200Milliseconds) {
  const Pipe pipe;
  Watch watch(pipe.reader.get(), 10s);
  ASSERT_EQ(turns_until_end(watch, 8), 8);
  pipe.speak();
  const auto begin = steady_clock::now();
  EXPECT_LT(turns_until_end(watch, 1024, 5ms), 100);
  EXPECT_LT(steady_clock::now() - begin, 200ms);
}

TEST(Watch, ALoopThatSeldomStandsStillAlsoHearsTheChannel) {
  const Pipe pipe;
  Watch watch(pipe.reader.get(), 10s);
  pipe.speak();
  const auto begin = steady_clock::now();
  do {
    watch.active();
    ASSERT_LT(steady_clock::now() - begin, 2s);
  } while (watch.idle());
}

TEST(Watch, StandingStillForTheLimitIsALostPeer) {
  const Pipe pipe;
  Watch watch(pipe.reader.get(), 300ms);
  const auto begin = steady_clock::now();
  EXPECT_THROW(
      {
        while (steady_clock::now() - begin < 5s) watch.idle();
      },
      PeerLost);
  EXPECT_GE(steady_clock::now() - begin, 280ms);  // the coarse clock lags by a tick
  EXPECT_LT(steady_clock::now() - begin, 1s);
}

TEST(Watch, ProgressBeginsTheLimitAnew) {
  const Pipe pipe;
  Watch watch(pipe.reader.get(), 300ms);
  for (const auto begin = steady_clock::now(); steady_clock::now() - begin < 700ms;) {
    watch.active();
    ASSERT_TRUE(watch.check());
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_TRUE(watch.check());
}

TEST(Watch, WithoutAChannelOnlyTheLimitCounts) {
  Watch watch(-1, 200ms);
  EXPECT_TRUE(watch.check());
  std::this_thread::sleep_for(250ms);
  EXPECT_THROW(watch.check(), PeerLost);
}

TEST(WatchDeathTest, ASignalEndsTheLoop) {
  EXPECT_EXIT(
      {
        handle_termination_signals();
        std::raise(SIGINT);
        Watch watch(-1, 10s);
        try {
          turns_until_end(watch, 2000);
        } catch (const Interrupted&) {
          std::_Exit(7);
        }
        std::_Exit(9);
      },
      ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace gdrbench::measure
