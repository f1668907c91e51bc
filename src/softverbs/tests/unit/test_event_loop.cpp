#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <string>
#include <system_error>
#include <thread>

#include "link/event_loop.hpp"

namespace gdrbench::softverbs {
namespace {

using namespace std::chrono_literals;

struct Pipe {
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) throw std::system_error(errno, std::generic_category());
    out = Descriptor(ends[0]);
    in = Descriptor(ends[1]);
  }
  void put() const { EXPECT_EQ(write(in.get(), "x", 1), 1); }

  Descriptor out, in;
};

Clock::duration time_of(const std::function<void()>& action) {
  const auto begin = Clock::now();
  action();
  return Clock::now() - begin;
}

// As another process does.
Descriptor open_doorbell(const EventLoop& loop) {
  const std::string path = "/proc/self/fd/" + std::to_string(loop.doorbell());
  return Descriptor(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
}

ssize_t ring(const Descriptor& doorbell) {
  return write(doorbell.get(), "", 1);
}

TEST(SoftverbsEventLoop, WaitEndsAtItsDeadline) {
  EventLoop loop;
  EXPECT_GE(time_of([&] { loop.wait(Clock::now() + 20ms); }), 20ms);
  EXPECT_LT(time_of([&] { loop.wait(Clock::now() - 1s); }), 1s);
}

TEST(SoftverbsEventLoop, AnyoneWhoOpensTheDoorbellRingsIt) {
  EventLoop loop;
  ASSERT_EQ(ring(open_doorbell(loop)), 1);
  EXPECT_LT(time_of([&] { loop.wait(Clock::now() + 10s); }), 5s);
  EXPECT_GE(time_of([&] { loop.wait(Clock::now() + 20ms); }), 20ms) << "one ring wakes once";
}

TEST(SoftverbsEventLoop, RingingNeverBlocksAndIsForgottenOnceHeard) {
  EventLoop loop;
  const Descriptor doorbell = open_doorbell(loop);
  for (int i = 0; i < 100'000; ++i) ring(doorbell);
  int wakes = 0;
  while (time_of([&] { loop.wait(Clock::now() + 50ms); }) < 50ms && wakes < 1000) ++wakes;
  EXPECT_GE(wakes, 1);
  EXPECT_LT(wakes, 1000);
}

TEST(SoftverbsEventLoop, HandlersRunForWhatIsReadyUntilRemoved) {
  EventLoop loop;
  const Pipe pipe;
  int runs = 0;
  loop.add(pipe.out.get(), EPOLLIN, [&](std::uint32_t events) {
    EXPECT_TRUE(events & EPOLLIN);
    ++runs;
  });
  loop.wait(Clock::now());
  EXPECT_EQ(runs, 0);
  pipe.put();
  loop.wait(Clock::now() + 10s);
  loop.wait(Clock::now() + 10s);
  EXPECT_EQ(runs, 2) << "level-triggered unless EPOLLET is given";
  loop.remove(pipe.out.get());
  loop.wait(Clock::now() + 10ms);
  EXPECT_EQ(runs, 2);
}

TEST(SoftverbsEventLoop, EdgesAreToldOnce) {
  EventLoop loop;
  const Pipe pipe;
  int runs = 0;
  loop.add(pipe.out.get(), EPOLLIN | EPOLLET, [&](std::uint32_t) { ++runs; });
  pipe.put();
  loop.wait(Clock::now() + 10s);
  loop.wait(Clock::now() + 10ms);
  EXPECT_EQ(runs, 1);
}

TEST(SoftverbsEventLoop, AHandlerMayRemoveItselfAndTheOther) {
  EventLoop loop;
  const Pipe one, other;
  int runs = 0;
  auto handler = [&](std::uint32_t) {
    ++runs;
    loop.remove(one.out.get());
    loop.remove(other.out.get());
  };
  loop.add(one.out.get(), EPOLLIN, handler);
  loop.add(other.out.get(), EPOLLIN, handler);
  one.put();
  other.put();
  loop.wait(Clock::now() + 10s);
  EXPECT_EQ(runs, 1) << "the second event was for a handler that is gone";
}

TEST(SoftverbsEventLoop, AnEventDoesNotReachALaterDescriptorOfTheSameNumber) {
  EventLoop loop;
  const Pipe first, second;
  bool strayed = false;
  auto handler = [&](std::uint32_t) {
    for (const Pipe* const pipe : {&first, &second}) {
      loop.remove(pipe->out.get());
      loop.add(pipe->out.get(), EPOLLIN, [&](std::uint32_t) { strayed = true; });
    }
  };
  loop.add(first.out.get(), EPOLLIN, handler);
  loop.add(second.out.get(), EPOLLIN, handler);
  first.put();
  second.put();
  loop.wait(Clock::now() + 10s);
  EXPECT_FALSE(strayed);
}

TEST(SoftverbsEventLoop, WhatCannotBeWaitedForIsRefused) {
  EventLoop loop;
  EXPECT_THROW(loop.add(-1, EPOLLIN, [](std::uint32_t) {}), std::system_error);
}

TEST(SoftverbsEventLoop, ANapIsEndedByInterruptAndByNothingElse) {
  EventLoop loop;
  const Pipe pipe;
  bool ran = false;
  loop.add(pipe.out.get(), EPOLLIN, [&](std::uint32_t) { ran = true; });
  pipe.put();
  ring(open_doorbell(loop));
  EXPECT_GE(time_of([&] { loop.nap(Clock::now() + 30ms); }), 30ms);
  EXPECT_FALSE(ran);
  loop.wait(Clock::now() + 10s);
  EXPECT_TRUE(ran) << "it was kept for the next wait";

  loop.interrupt();
  EXPECT_LT(time_of([&] { loop.nap(Clock::now() + 10s); }), 5s) << "also when it came before";
  EXPECT_GE(time_of([&] { loop.nap(Clock::now() + 30ms); }), 30ms) << "an interrupt ends one nap";
}

TEST(SoftverbsEventLoop, InterruptWakesWait) {
  EventLoop loop;
  loop.interrupt();
  EXPECT_LT(time_of([&] { loop.wait(Clock::now() + 10s); }), 5s);
}

}  // namespace
}  // namespace gdrbench::softverbs
