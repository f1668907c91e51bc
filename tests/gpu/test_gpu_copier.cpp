#include <chrono>
#include <memory>
#include <thread>
#include <tuple>
#include <vector>

#include "gdrbench/error.hpp"
#include "memory/copier.hpp"
#include "needs_gpu.hpp"

namespace gdrbench {
namespace {

using memory::Copier;
using memory::Towards;

/// Kind of GPU memory, and whether the host side is pageable.
class GpuCopier : public NeedsGpu, public ::testing::WithParamInterface<std::tuple<MemoryKind, bool>> {
 protected:
  std::unique_ptr<Copier> copier(Towards towards) const {
    return memory::make_copier({.payload = kind(), .towards = towards, .pageable = pageable(), .streams = 1});
  }
  MemoryKind kind() const { return std::get<0>(GetParam()); }
  bool pageable() const { return std::get<1>(GetParam()); }
  Buffer payload(std::uint64_t length) const {
    return Buffer(BufferOptions{.kind = kind(), .length = length});
  }
  Buffer bounce(std::uint64_t length) const {
    return Buffer(BufferOptions{.length = length, .pin_for_gpu = !pageable()});
  }
};
std::string copier_name(const ::testing::TestParamInfo<std::tuple<MemoryKind, bool>>& info) {
  const auto& [kind, pageable] = info.param;
  return std::string(to_string(kind)) + (pageable ? "_pageable" : "_pinned");
}
INSTANTIATE_TEST_SUITE_P(Kinds, GpuCopier,
                         ::testing::Combine(::testing::ValuesIn(gpu_memory_kinds), ::testing::Bool()),
                         copier_name);

constexpr std::uint64_t sizes[] = {1, 3, 4096, (1 << 20) + 1, 64 << 20};

/// Fails the test instead of hanging it when a copy never ends.
void finish(Copier& copier) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (copier.finished() < copier.submitted()) {
    ASSERT_LT(std::chrono::steady_clock::now(), limit) << copier.finished() << " of " << copier.submitted();
    std::this_thread::yield();
  }
}

TEST_P(GpuCopier, BringsEveryByteToTheHost) {
  for (const std::uint64_t size : sizes) {
    const Buffer from = payload(size);
    const Buffer to = bounce(size);
    fill_pattern(from, {.length = size, .seed = size});
    scrub(to, {.length = size, .seed = size});
    const auto by = copier(Towards::host);
    by->submit(to.data(), from.data(), size);
    finish(*by);
    EXPECT_FALSE(find_mismatch(to, {.length = size, .seed = size})) << size;
  }
}

TEST_P(GpuCopier, BringsEveryByteToTheGpu) {
  for (const std::uint64_t size : sizes) {
    const Buffer from = bounce(size);
    const Buffer to = payload(size);
    fill_pattern(from, {.length = size, .seed = size});
    scrub(to, {.length = size, .seed = size});
    const auto by = copier(Towards::gpu);
    by->submit(to.data(), from.data(), size);
    finish(*by);
    EXPECT_FALSE(find_mismatch(to, {.length = size, .seed = size})) << size;
  }
}

TEST_P(GpuCopier, CountsMoreCopiesInFlightThanItMadeEventsForAndKeepsTheirOrder) {
  constexpr std::uint64_t piece = 64 << 10;
  constexpr std::uint64_t pieces = 500;
  const Buffer there = payload(piece);
  const Buffer here = bounce(piece * pieces);
  fill_pattern(here, {.length = here.size(), .seed = 1});
  const auto by = copier(Towards::gpu);
  // All to one place: the last one submitted is the one that stays.
  for (std::uint64_t i = 0; i < pieces; ++i) by->submit(there.data(), here.data() + i * piece, piece);
  EXPECT_EQ(by->submitted(), pieces);
  finish(*by);
  const Buffer back = bounce(piece);
  const auto home = copier(Towards::host);
  home->submit(back.data(), there.data(), piece);
  finish(*home);
  EXPECT_TRUE(std::equal(back.data(), back.data() + piece, here.data() + (pieces - 1) * piece));
}

TEST_P(GpuCopier, HasFinishedWhatIsInFlightWhenItIsDestroyed) {
  constexpr std::uint64_t size = 64 << 20;
  const Buffer there = payload(size);
  fill_pattern(there, {.length = size, .seed = 3});
  const Buffer here = bounce(size);
  scrub(here, {.length = size, .seed = 3});
  {
    const auto by = copier(Towards::host);
    by->submit(here.data(), there.data(), size);
  }
  EXPECT_FALSE(find_mismatch(here, {.length = size, .seed = 3}));
}

TEST_P(GpuCopier, HasFinishedACopyOfPageableMemoryWhenSubmitReturns) {
  if (!pageable()) GTEST_SKIP() << "pinned copies run on after submit";
  const Buffer there = payload(1 << 20);
  const Buffer here = bounce(1 << 20);
  const auto by = copier(Towards::gpu);
  by->submit(there.data(), here.data(), 1 << 20);
  EXPECT_EQ(by->finished(), 1U);
}

TEST_P(GpuCopier, WorksFromAnotherThread) {
  const Buffer there = payload(1 << 20);
  const Buffer here = bounce(1 << 20);
  fill_pattern(here, {.length = here.size(), .seed = 2});
  scrub(there, {.length = there.size(), .seed = 2});
  const auto by = copier(Towards::gpu);
  std::thread([&] {
    by->submit(there.data(), here.data(), here.size());
    finish(*by);
  }).join();
  EXPECT_FALSE(find_mismatch(there, {.length = there.size(), .seed = 2}));
}

TEST_F(NeedsGpu, SeveralStreamsFinishInTheOrderOfSubmission) {
  constexpr std::uint64_t piece = 1 << 20, pieces = 64;
  const Buffer there(BufferOptions{.kind = MemoryKind::cuda, .length = piece * pieces});
  const Buffer here(BufferOptions{.length = piece * pieces, .pin_for_gpu = true});
  fill_pattern(there, {.length = there.size(), .seed = 4});
  scrub(here, {.length = here.size(), .seed = 4});
  const std::vector<std::byte> scrubbed(here.data(), here.data() + here.size());
  const auto by = memory::make_copier({.payload = MemoryKind::cuda, .towards = Towards::host, .streams = 4});
  for (std::uint64_t i = 0; i < pieces; ++i)
    by->submit(here.data() + i * piece, there.data() + i * piece, piece);
  // Of whatever is said to be finished, the last byte is there: it never is in a scrubbed range.
  for (std::uint64_t seen = 0; seen < pieces;)
    for (const std::uint64_t finished = by->finished(); seen < finished; ++seen) {
      const std::uint64_t last = (seen + 1) * piece - 1;
      ASSERT_NE(here.data()[last], scrubbed[last]) << "piece " << seen;
    }
  EXPECT_FALSE(find_mismatch(here, {.length = here.size(), .seed = 4}));
}

}  // namespace
}  // namespace gdrbench
