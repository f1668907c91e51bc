#include <chrono>
#include <thread>

#include "cuda/resident.hpp"
#include "memory/copier.hpp"
#include "needs_gpu.hpp"

// Between start() and stop() a test makes nothing that waits for the GPU, and leaves only by its end.
namespace gdrbench {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t size = 4099;
constexpr std::uint64_t watched_seed = 11;

class GpuWatcher : public NeedsGpuMemory {};
INSTANTIATE_TEST_SUITE_P(Kinds, GpuWatcher, ::testing::ValuesIn(gpu_memory_kinds), kind_name);

/// A message that is copied to the GPU again and again, on a stream of its own, and the watcher of its last
/// byte.
struct Message {
  explicit Message(MemoryKind kind)
      : source({.length = size, .pin_for_gpu = true}),
        target({.kind = kind, .length = size}),
        copier(memory::make_copier({.payload = kind, .towards = memory::Towards::gpu})),
        watcher(0) {
    fill_pattern(source, {.length = size, .seed = watched_seed});
    scrub(target, {.length = size, .seed = watched_seed});
  }
  void watch(std::uint64_t messages) {
    watcher.start(target.data() + size - 1, pattern_byte(size - 1, watched_seed), messages);
  }
  void send() { copier->submit(target.data(), source.data(), size); }
  std::uint64_t seen_within(std::uint64_t messages, std::chrono::milliseconds limit) const {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (watcher.seen() < messages && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    return watcher.seen();
  }

  Buffer source, target;
  std::unique_ptr<memory::Copier> copier;
  cuda::GpuWatcher watcher;  // ends before what it looks at
};

TEST_P(GpuWatcher, SeesEveryMessageOnceAndTurnsItsLastByteOver) {
  Message message(GetParam());
  message.watch(1000);
  for (std::uint64_t sent = 1; sent <= 20; ++sent) {
    EXPECT_EQ(message.watcher.seen(), sent - 1);
    message.send();
    EXPECT_EQ(message.seen_within(sent, 10s), sent);
  }
  EXPECT_NO_THROW(message.watcher.check());
  message.watcher.stop();
  EXPECT_EQ(message.watcher.seen(), 20U);
  EXPECT_FALSE(find_mismatch(message.target, {.length = size - 1, .seed = watched_seed}))
      << "the other bytes";
  const auto last = find_mismatch(message.target, {.length = size, .seed = watched_seed});
  ASSERT_TRUE(last);
  EXPECT_EQ(last->offset, size - 1);
  EXPECT_EQ(last->found, static_cast<std::uint8_t>(~last->expected));
}

TEST_P(GpuWatcher, IsDoneAfterTheMessagesThatWereAskedFor) {
  Message message(GetParam());
  message.watch(2);
  for (const std::uint64_t sent : {1, 2}) {
    message.send();
    EXPECT_EQ(message.seen_within(sent, 10s), sent);
  }
  message.send();
  EXPECT_EQ(message.seen_within(3, 100ms), 2U);
  message.watcher.stop();
  EXPECT_FALSE(find_mismatch(message.target, {.length = size, .seed = watched_seed}))
      << "the last byte was turned over once more";
}

TEST_P(GpuWatcher, EndsWhenToldToThoughNothingCame) {
  Message message(GetParam());
  message.watch(1);
  std::this_thread::sleep_for(50ms);
  const auto begun = std::chrono::steady_clock::now();
  message.watcher.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 1s);
  EXPECT_EQ(message.watcher.seen(), 0U);
}

TEST_P(GpuWatcher, CountsAnewWhenItIsStartedAgain) {
  Message message(GetParam());
  for (int round = 0; round < 3; ++round) {
    message.watch(5);
    EXPECT_EQ(message.watcher.seen(), 0U);
    message.send();
    EXPECT_EQ(message.seen_within(1, 10s), 1U);
    message.watcher.stop();
  }
}

TEST_P(GpuWatcher, EndsWithItsObject) {
  Message message(GetParam());
  message.watch(1);
}  // and would hang here

}  // namespace
}  // namespace gdrbench
