#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <system_error>

#include "links.hpp"

namespace gdrbench::softverbs {
namespace {

using namespace test;

/// A link whose remote is the test itself, with its hands in the rings and on the socket.
struct Victim {
  explicit Victim(bool shares_rings) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
      throw std::system_error(errno, std::generic_category());
    }
    socket = Descriptor(ends[0]);
    Link::Parts parts;
    parts.socket = Descriptor(ends[1]);
    parts.rings = RingPair::map(Descriptor(dup(rings->descriptor())), 42);
    parts.shares_rings = shares_rings;
    link = std::make_unique<Link>(loop, std::move(parts));
  }

  EventLoop loop;
  std::unique_ptr<RingPair> rings = RingPair::offer(42);
  Descriptor socket;
  std::unique_ptr<Link> link;
};

TEST(SoftverbsLinkDefence, ImpossiblePositionsInSharedRingsBreakTheLink) {
  for (const std::uint64_t position : {ring_bytes + 64, std::size_t{63}, std::size_t{65}, ~std::size_t{0}}) {
    Victim victim(true);
    victim.rings->outgoing().produced = position;
    EXPECT_EQ(victim.link->next(), nullptr);
    EXPECT_STREQ(victim.link->why_broken(), "the remote left an impossible position in the ring") << position;
  }
  Victim victim(true);
  victim.rings->incoming().consumed = 64;
  EXPECT_TRUE(victim.link->fits(0)) << "looked at only when room is short";
  for (int i = 0; i < 20 && victim.link->fits(max_frame_payload_bytes); ++i) {
    victim.link->add(send_header(0, max_frame_payload_bytes));
  }
  EXPECT_STREQ(victim.link->why_broken(), "the remote left an impossible position in the ring");
}

TEST(SoftverbsLinkDefence, APartOfAFrameInASharedRingBreaksTheLink) {
  Victim victim(true);
  RingProducer producer(victim.rings->outgoing());
  const FrameHeader header = send_header(0, 100);
  std::memcpy(producer.reserve(64).first.data(), &header, sizeof header);
  EXPECT_FALSE(producer.publish());
  EXPECT_EQ(victim.link->next(), nullptr);
  EXPECT_STREQ(victim.link->why_broken(), "the remote published a part of a frame");
}

TEST(SoftverbsLinkDefence, AHeaderThatChangesAfterItWasCheckedDoesNotMatter) {
  Victim victim(true);
  RingProducer producer(victim.rings->outgoing());
  const FrameHeader header = send_header(0, 8);
  FrameHeader bad = header;
  bad.payload_bytes = 0xffffffff;
  std::byte* const place = producer.reserve(128).first.data();
  std::memcpy(place, &header, sizeof header);
  EXPECT_FALSE(producer.publish());
  const FrameHeader* const taken = victim.link->next();
  ASSERT_NE(taken, nullptr);
  std::memcpy(place, &bad, sizeof bad);
  EXPECT_EQ(taken->payload_bytes, 8u);
  EXPECT_EQ(victim.link->payload().first.size(), 8u);
}

TEST(SoftverbsLinkDefence, OverTheSocketAFrameIsTakenOnceItIsWhole) {
  Victim victim(false);
  const FrameHeader header = send_header(7, 100);
  std::vector<std::byte> bytes(frame_bytes(100));
  std::memcpy(bytes.data(), &header, sizeof header);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    EXPECT_EQ(victim.link->next(), nullptr) << at;
    EXPECT_FALSE(victim.link->arm()) << at;
    ASSERT_EQ(write(victim.socket.get(), &bytes[at], 1), 1);
  }
  const FrameHeader* const taken = victim.link->next();
  ASSERT_NE(taken, nullptr);
  EXPECT_EQ(taken->message, 7u);
}

TEST(SoftverbsLinkDefence, WithoutADoorbellAByteOnTheSocketRings) {
  Victim victim(true);
  while (victim.link->arm()) {
  }
  victim.loop.wait(Clock::now());
  ASSERT_EQ(write(victim.socket.get(), "", 1), 1);
  const auto before = Clock::now();
  victim.loop.wait(before + 10s);
  EXPECT_LT(Clock::now() - before, 5s);
  EXPECT_EQ(victim.link->next(), nullptr);
  EXPECT_FALSE(victim.link->broken());

  // And the other way round: what the link publishes rings the remote, who said that it sleeps.
  RingConsumer consumer(victim.rings->incoming());
  EXPECT_FALSE(consumer.arm());
  ASSERT_TRUE(try_add(*victim.link, 0, 8));
  victim.link->flush();
  char byte;
  EXPECT_EQ(read(victim.socket.get(), &byte, 1), 1);
}

TEST(SoftverbsLinkDefence, OfferedRingsMustBeSealedOfTheRightSizeAndTheirs) {
  const auto offered = RingPair::offer(42);
  EXPECT_NE(RingPair::map(Descriptor(dup(offered->descriptor())), 42), nullptr);
  EXPECT_EQ(RingPair::map(Descriptor(dup(offered->descriptor())), 43), nullptr) << "another cookie";
  EXPECT_EQ(RingPair::map(Descriptor(), 42), nullptr);

  const off_t size = lseek(offered->descriptor(), 0, SEEK_END);
  const auto of_size = [](off_t bytes, int seals) {
    Descriptor file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(ftruncate(file.get(), bytes), 0);
    EXPECT_EQ(fcntl(file.get(), F_ADD_SEALS, seals), 0);
    return file;
  };
  const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  EXPECT_NE(RingPair::map(of_size(size, all), 0), nullptr);
  EXPECT_EQ(RingPair::map(of_size(size, F_SEAL_GROW), 0), nullptr) << "it could shrink";
  EXPECT_EQ(RingPair::map(of_size(size - 4096, all), 0), nullptr);
  EXPECT_EQ(RingPair::map(of_size(size, all | F_SEAL_WRITE), 0), nullptr);
}

}  // namespace
}  // namespace gdrbench::softverbs
