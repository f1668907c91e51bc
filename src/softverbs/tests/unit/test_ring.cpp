#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <semaphore>
#include <thread>

#include "link/ring.hpp"

namespace gdrbench::softverbs {
namespace {

struct Ring {
  std::unique_ptr<RingMemory> memory = std::make_unique<RingMemory>();
  RingProducer producer{*memory};
  RingConsumer consumer{*memory};
};

void fill(const RingSpans& spans, std::uint8_t value) {
  std::memset(spans.first.data(), value, spans.first.size());
  if (!spans.second.empty()) std::memset(spans.second.data(), value, spans.second.size());
}

std::size_t count(const RingSpans& spans, std::uint8_t value) {
  std::size_t equal = 0;
  for (const std::byte byte : spans.first) equal += byte == std::byte(value);
  for (const std::byte byte : spans.second) equal += byte == std::byte(value);
  return equal;
}

TEST(SoftverbsRing, NothingIsVisibleBeforePublish) {
  Ring ring;
  ASSERT_TRUE(ring.producer.fits(128));
  ring.producer.reserve(128);
  EXPECT_EQ(ring.consumer.available(), 0u);
  EXPECT_FALSE(ring.producer.publish());
  EXPECT_EQ(ring.consumer.available(), 128u);
}

TEST(SoftverbsRing, RetractedBytesAreNotPublished) {
  Ring ring;
  ring.producer.reserve(ring.producer.room());
  ring.producer.retract(ring_bytes - 100);
  EXPECT_FALSE(ring.producer.publish());
  EXPECT_EQ(ring.consumer.available(), 100u);
  EXPECT_EQ(ring.producer.room(), ring_bytes - 100);
}

TEST(SoftverbsRing, BytesComeOutAsTheyWentInAroundTheEnd) {
  Ring ring;
  bool wrapped = false;
  for (unsigned i = 0; i < 200; ++i) {
    const std::size_t bytes = 64 * (1 + i * 37 % 2000);
    ASSERT_TRUE(ring.producer.fits(bytes));
    const RingSpans room = ring.producer.reserve(bytes);
    ASSERT_EQ(room.first.size() + room.second.size(), bytes);
    wrapped |= !room.second.empty();
    fill(room, std::uint8_t(i));
    EXPECT_FALSE(ring.producer.publish());
    ASSERT_EQ(ring.consumer.available(), bytes);
    EXPECT_EQ(count(ring.consumer.peek(0, bytes), std::uint8_t(i)), bytes);
    ring.consumer.consume(bytes);
    EXPECT_FALSE(ring.consumer.release());
  }
  EXPECT_TRUE(wrapped);
}

TEST(SoftverbsRing, FullRingTakesNothingAndAsksToBeRungOnce) {
  Ring ring;
  ASSERT_TRUE(ring.producer.fits(ring_bytes));
  ring.producer.reserve(ring_bytes);
  EXPECT_FALSE(ring.producer.publish());
  EXPECT_FALSE(ring.producer.fits(64));
  ASSERT_EQ(ring.consumer.available(), ring_bytes);
  ring.consumer.consume(128);
  EXPECT_FALSE(ring.producer.fits(64)) << "room is handed back by release";
  EXPECT_TRUE(ring.consumer.release());
  ring.consumer.consume(64);
  EXPECT_FALSE(ring.consumer.release()) << "rung already";
  EXPECT_TRUE(ring.producer.fits(192));
  EXPECT_FALSE(ring.producer.corrupt());
}

TEST(SoftverbsRing, OnlyAnArmedConsumerIsRungAndOnlyOnce) {
  Ring ring;
  EXPECT_FALSE(ring.consumer.arm());
  ring.producer.reserve(64);
  EXPECT_TRUE(ring.producer.publish());
  ring.producer.reserve(64);
  EXPECT_FALSE(ring.producer.publish());
  ring.consumer.consume(ring.consumer.available());
  EXPECT_FALSE(ring.consumer.arm());
  ring.consumer.disarm();
  ring.producer.reserve(64);
  EXPECT_FALSE(ring.producer.publish());
}

TEST(SoftverbsRing, ArmingTellsOfWhatCameMeanwhile) {
  Ring ring;
  ring.producer.reserve(64);
  EXPECT_FALSE(ring.producer.publish());
  EXPECT_TRUE(ring.consumer.arm());
}

TEST(SoftverbsRing, KnownBytesNeedNoLookAtTheSharedPosition) {
  Ring ring;
  ring.producer.reserve(128);
  EXPECT_FALSE(ring.producer.publish());
  EXPECT_EQ(ring.consumer.available(), 128u);
  ring.memory->produced = 256;
  EXPECT_EQ(ring.consumer.available(64), 128u);
  EXPECT_EQ(ring.consumer.available(), 256u);
}

TEST(SoftverbsRing, ImpossiblePositionsOfAProducerAreSeen) {
  for (const std::uint64_t position :
       {ring_bytes + 65, std::size_t{1} << 63, ~std::size_t{0}, std::size_t{0}}) {
    Ring ring;
    ring.producer.reserve(128);
    EXPECT_FALSE(ring.producer.publish());
    EXPECT_EQ(ring.consumer.available(), 128u);
    ring.consumer.consume(64);
    EXPECT_FALSE(ring.consumer.release());
    ring.memory->produced = ring_bytes + 64;
    EXPECT_EQ(ring.consumer.available(), ring_bytes);
    EXPECT_FALSE(ring.consumer.corrupt());
    ring.memory->produced = position;
    EXPECT_EQ(ring.consumer.available(ring_bytes + 1), ring_bytes) << "what was known stays";
    EXPECT_TRUE(ring.consumer.corrupt()) << position;
  }
}

TEST(SoftverbsRing, ImpossiblePositionsOfAConsumerAreSeen) {
  for (const std::uint64_t position : {ring_bytes + 1, ~std::size_t{0}, std::size_t{64}}) {
    Ring ring;
    ring.producer.reserve(ring_bytes);
    EXPECT_FALSE(ring.producer.publish());
    ring.memory->consumed = 128;
    EXPECT_EQ(ring.producer.room(), 128u);
    ring.memory->consumed = position;
    EXPECT_FALSE(ring.producer.fits(ring_bytes));
    EXPECT_TRUE(ring.producer.corrupt()) << position;
    EXPECT_EQ(ring.producer.room(), 0u);
  }
}

// Every frame fills the ring, so that each side waits for the other each time; how long it polls before it
// sleeps varies, so that the moment between its last look and its sleep is met now and then.
TEST(SoftverbsRing, EachSideIsRungWhenItWasJustAboutToSleep) {
  constexpr int rounds = 200'000;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  Ring ring;
  std::counting_semaphore<> to_consumer{0}, to_producer{0};
  bool producer_overslept = false, consumer_overslept = false;
  {
    std::jthread producing([&] {
      bool last = false;
      for (int i = 0; !last; ++i) {
        for (auto polls = i * 97LL % 20011; polls > 0 && ring.producer.room() == 0;) --polls;
        while (!ring.producer.fits(ring_bytes)) {
          producer_overslept = !to_producer.try_acquire_for(std::chrono::seconds(5));
          if (producer_overslept) return;
        }
        last = i == rounds || std::chrono::steady_clock::now() > end;
        ring.producer.reserve(ring_bytes).first[0] = std::byte{last};
        if (ring.producer.publish()) to_consumer.release();
      }
    });
    bool last = false;
    for (int i = 0; !last; ++i) {
      for (auto polls = i * 89LL % 15013; polls > 0 && ring.consumer.available() == 0;) --polls;
      while (ring.consumer.available() == 0 && !consumer_overslept) {
        if (!ring.consumer.arm()) {
          consumer_overslept = !to_consumer.try_acquire_for(std::chrono::seconds(5));
        }
      }
      if (consumer_overslept) break;
      last = ring.consumer.peek(0, 1).first[0] != std::byte{};
      ring.consumer.consume(ring_bytes);
      if (ring.consumer.release()) to_producer.release();
    }
  }
  EXPECT_FALSE(producer_overslept);
  EXPECT_FALSE(consumer_overslept);
}

// Each side sleeps whenever the protocol says it may: a ring that is missed makes the test hang, and fail.
TEST(SoftverbsRing, NobodySleepsForEverAndNothingIsLost) {
  constexpr std::uint64_t total = std::uint64_t{64} << 20;
  Ring ring;
  std::counting_semaphore<> to_consumer{0}, to_producer{0};
  bool producer_overslept = false;
  std::jthread producing([&] {
    std::uint8_t value = 0;
    for (std::uint64_t done = 0; done < total;) {
      const std::size_t bytes = 64 * (1 + (done >> 6) % 1500);
      if (!ring.producer.fits(bytes)) {
        producer_overslept = !to_producer.try_acquire_for(std::chrono::seconds(5));
        if (producer_overslept) return;
        continue;
      }
      const RingSpans room = ring.producer.reserve(bytes);
      fill(room, value++);
      done += bytes;
      if (ring.producer.publish()) to_consumer.release();
    }
  });
  std::uint8_t value = 0;
  for (std::uint64_t done = 0; done < total;) {
    const std::size_t bytes = 64 * (1 + (done >> 6) % 1500);
    if (ring.consumer.available(bytes) < bytes) {
      if (!ring.consumer.arm()) {
        ASSERT_TRUE(to_consumer.try_acquire_for(std::chrono::seconds(5)));
      }
      continue;
    }
    ASSERT_EQ(count(ring.consumer.peek(0, bytes), value++), bytes);
    ring.consumer.consume(bytes);
    done += bytes;
    if (ring.consumer.release()) to_producer.release();
  }
  producing.join();
  EXPECT_FALSE(producer_overslept);
  EXPECT_FALSE(ring.producer.corrupt() || ring.consumer.corrupt());
}

}  // namespace
}  // namespace gdrbench::softverbs
