#include <atomic>
#include <string>
#include <thread>

#include "links.hpp"

namespace gdrbench::softverbs {
namespace {

using namespace test;

/// Two ends over shared rings (`auto`) and over the socket (`tcp`).
class SoftverbsLink : public testing::TestWithParam<const char*> {
 protected:
  bool shares_memory() const { return std::string(GetParam()) == "auto"; }
  bool drive(const std::function<bool()>& done) { return wait_for({&here.loop, &there.loop}, done); }

  Environment transport{"GDRBENCH_SOFTVERBS_TRANSPORT", GetParam()};
  Process here, there;
  Connection ends = connect(here, there);
  Link& near = *ends.dialing;
  Link& far = *ends.accepting;
};

TEST_P(SoftverbsLink, FramesOfAllSizesArriveInOrderBothWays) {
  std::uint32_t number = 0;
  for (const bool forth : {true, false}) {
    Link& from = forth ? near : far;
    Link& to = forth ? far : near;
    for (std::size_t size = 0; size <= max_frame_payload_bytes; size += 1 + size / 3, ++number) {
      ASSERT_TRUE(drive([&] { return try_add(from, number, size); })) << size;
      from.flush();
      ASSERT_TRUE(drive([&] { return try_take(to, number, size); })) << size;
    }
    ASSERT_TRUE(drive([&] { return try_add(from, number, max_frame_payload_bytes); }));
    from.flush();
    ASSERT_TRUE(drive([&] { return try_take(to, number, max_frame_payload_bytes); }));
  }
}

TEST_P(SoftverbsLink, NothingIsVisibleBeforeFlush) {
  ASSERT_TRUE(try_add(near, 0, 8));
  ASSERT_TRUE(try_add(near, 1, 8));
  drive([&, turns = 0]() mutable { return ++turns > 10; });
  EXPECT_EQ(far.next(), nullptr);
  near.flush();
  EXPECT_TRUE(drive([&] { return try_take(far, 0, 8); }));
  EXPECT_TRUE(drive([&] { return try_take(far, 1, 8); }));
}

TEST_P(SoftverbsLink, AFullRingRefusesAndWakesItsOwnerOnceThereIsRoom) {
  std::uint32_t sent = 0;
  const std::size_t size = 100'000;
  for (; near.fits(size); ++sent) {
    ASSERT_LT(sent, 10'000u) << "no ring is endless";
    ASSERT_TRUE(try_add(near, sent, size));
    near.flush();
  }
  EXPECT_GE(sent, 10u);
  here.loop.wait(Clock::now() + 20ms);
  bool rung = false;
  std::atomic<bool> done = false;
  std::jthread waiting([&] {
    const auto before = Clock::now();
    while (!near.fits(size) && Clock::now() < before + 20s) here.loop.wait(Clock::now() + 10s);
    rung = Clock::now() - before < 5s;
    done = true;
  });
  std::this_thread::sleep_for(20ms);
  std::uint32_t taken = 0;
  while (!done) {
    if (taken < sent && try_take(far, taken, size)) ++taken;
  }
  waiting.join();
  EXPECT_TRUE(rung) << "not the doorbell or the socket woke it, but the deadline";
  ASSERT_TRUE(try_add(near, sent, size));
  near.flush();
  EXPECT_TRUE(drive([&] {
    near.next();  // over the socket, this goes on writing
    while (taken <= sent && try_take(far, taken, size)) ++taken;
    return taken > sent;
  }));
}

TEST_P(SoftverbsLink, WhatTheSocketDidNotTakeAtOnceGoesOutWithNext) {
  std::uint32_t sent = 0, taken = 0;
  for (; near.fits(100'000); ++sent) {
    ASSERT_TRUE(try_add(near, sent, 100'000));
    near.flush();
  }
  EXPECT_EQ(near.all_sent(), shares_memory());
  EXPECT_TRUE(drive([&] {
    EXPECT_EQ(near.next(), nullptr);
    while (taken < sent && try_take(far, taken, 100'000)) ++taken;
    return taken == sent;
  }));
  EXPECT_TRUE(near.all_sent());
}

TEST_P(SoftverbsLink, AnArmedEndIsWoken) {
  for (std::uint32_t number = 0; number < 50; ++number) {
    EXPECT_EQ(far.next(), nullptr);
    while (far.arm()) EXPECT_EQ(far.next(), nullptr);
    std::jthread sending([&] {
      std::this_thread::sleep_for(1ms);
      EXPECT_TRUE(try_add(near, number, 8));
      near.flush();
    });
    const auto before = Clock::now();
    while (!try_take(far, number, 8) && Clock::now() < before + 20s) there.loop.wait(Clock::now() + 10s);
    EXPECT_LT(Clock::now() - before, 5s);
    far.disarm();
  }
}

TEST_P(SoftverbsLink, ArmingTellsOfAFrameThatCameMeanwhile) {
  EXPECT_EQ(far.next(), nullptr);
  ASSERT_TRUE(try_add(near, 0, 8));
  near.flush();
  EXPECT_TRUE(drive([&] { return far.arm(); }));
  EXPECT_TRUE(try_take(far, 0, 8));
}

TEST_P(SoftverbsLink, FramesFromBeforeTheEndAreStillThere) {
  for (std::uint32_t number = 0; number < 10; ++number) ASSERT_TRUE(try_add(near, number, 1000));
  near.flush();
  ends.dialing.reset();
  std::uint32_t taken = 0;
  while (taken < 5 && try_take(far, taken, 1000)) ++taken;
  EXPECT_TRUE(drive([&] {
    while (try_take(far, taken, 1000)) ++taken;
    return far.broken();
  }));
  EXPECT_EQ(taken, 10u);
  EXPECT_STREQ(far.why_broken(), "the remote closed the connection");
  EXPECT_FALSE(far.fits(0));
}

TEST_P(SoftverbsLink, AFrameThatIsKeptDoesNotHideTheEndOfTheRemote) {
  ASSERT_TRUE(try_add(near, 0, 8));
  ASSERT_TRUE(try_add(near, 1, 8));
  near.flush();
  ASSERT_TRUE(drive([&] { return far.next() != nullptr; }));
  ends.dialing.reset();
  EXPECT_TRUE(drive([&] { return far.next() != nullptr && far.broken(); }));
  EXPECT_TRUE(try_take(far, 0, 8));
  EXPECT_TRUE(try_take(far, 1, 8));
}

// The write fails first, and what the remote had sent is read all the same. A SIGPIPE would end this program.
TEST_P(SoftverbsLink, WritingToARemoteThatIsGoneNeitherKillsNorLosesFrames) {
  while (far.arm()) {
  }
  ASSERT_TRUE(try_add(near, 0, 8));
  near.flush();
  while (near.arm()) {
  }
  ends.dialing.reset();
  for (std::uint32_t number = 0; number < 20 && !far.broken() && try_add(far, number, 8); ++number) {
    far.flush();
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_TRUE(drive([&] { return try_take(far, 0, 8); }));
  EXPECT_TRUE(drive([&] { return far.next() == nullptr && far.broken(); }));
}

TEST_P(SoftverbsLink, ShuttingEndsBothEnds) {
  near.shut("enough");
  EXPECT_TRUE(near.broken());
  EXPECT_STREQ(near.why_broken(), "enough");
  EXPECT_EQ(near.next(), nullptr);
  EXPECT_FALSE(near.arm());
  EXPECT_TRUE(drive([&] { return far.next() == nullptr && far.broken(); }));
}

TEST_P(SoftverbsLink, AMalformedFrameBreaksItsLinkAndNoOther) {
  const Connection other = connect(here, there);
  ASSERT_TRUE(try_add(near, 0, 8));
  FrameHeader bad = send_header(1, 8);
  bad.flags = 0x80;
  ASSERT_TRUE(near.fits(8));
  near.add(bad);
  ASSERT_TRUE(try_add(near, 2, 8));
  near.flush();
  EXPECT_TRUE(drive([&] { return try_take(far, 0, 8); }));
  EXPECT_TRUE(drive([&] { return far.next() == nullptr && far.broken(); }));
  EXPECT_STREQ(far.why_broken(), "frame with unknown flags");
  EXPECT_EQ(far.next(), nullptr) << "what follows cannot be trusted";
  EXPECT_TRUE(drive([&] { return near.next() == nullptr && near.broken(); }));

  ASSERT_TRUE(try_add(*other.dialing, 0, 8));
  other.dialing->flush();
  EXPECT_TRUE(drive([&] { return try_take(*other.accepting, 0, 8); }));
}

TEST_P(SoftverbsLink, MemoryIsReadOnlyWhereSharingIsAllowed) {
  EXPECT_EQ(near.can_pull(), shares_memory());
  EXPECT_EQ(far.can_pull(), shares_memory());
  EXPECT_EQ(near.remote_can_pull(), shares_memory());
  const std::string theirs = "what the remote has";
  std::string ours(theirs.size(), ' ');
  const auto address = reinterpret_cast<std::uint64_t>(theirs.data());
  EXPECT_EQ(near.pull(address, ours.data(), ours.size()), shares_memory() ? 0 : EPERM);
  EXPECT_EQ(ours == theirs, shares_memory());
}

/// Sends `frames` frames of mixed sizes and takes as many, sleeping whenever there is nothing to do, until
/// both ends have all.
bool exchange(Link& link, EventLoop& loop, std::uint32_t frames, std::atomic<int>& finished) {
  std::uint32_t sent = 0, taken = 0;
  const auto size = [](std::uint32_t number) { return std::size_t{number} * 7919 % 9000; };
  const auto deadline = Clock::now() + 30s;
  for (bool told = false; finished < 2;) {
    bool idle = true;
    while (sent < frames && try_add(link, sent, size(sent))) ++sent, idle = false;
    link.flush();
    while (try_take(link, taken, size(taken))) ++taken, idle = false;
    if (!told && sent == frames && taken == frames) {
      told = true;
      ++finished;
    }
    if (idle && !link.arm()) loop.wait(told ? Clock::now() + 1ms : deadline);
    if (Clock::now() > deadline || link.broken()) return false;
  }
  return taken == frames;
}

TEST_P(SoftverbsLink, TwoThreadsExchangeFramesAndSleepInBetween) {
  std::atomic<int> finished = 0;
  bool near_has_all = false, far_has_all = false;
  {
    std::jthread one([&] { near_has_all = exchange(near, here.loop, 5000, finished); });
    std::jthread other([&] { far_has_all = exchange(far, there.loop, 5000, finished); });
  }
  EXPECT_TRUE(near_has_all);
  EXPECT_TRUE(far_has_all);
}

std::string name_of(const testing::TestParamInfo<const char*>& info) {
  return std::string(info.param) == "auto" ? "SharedRings" : "Socket";
}

INSTANTIATE_TEST_SUITE_P(Modes, SoftverbsLink, testing::Values("auto", "tcp"), name_of);

}  // namespace
}  // namespace gdrbench::softverbs
