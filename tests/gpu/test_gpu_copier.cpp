#include <chrono>
#include <memory>
#include <thread>
#include <tuple>

#include "gdrbench/error.hpp"
#include "needs_gpu.hpp"

namespace gdrbench {
namespace {

constexpr std::uint64_t sizes[] = {1, 3, 4096, (1 << 20) + 1, 64 << 20};

/// Kind of GPU memory, and whether the host side is pageable.
class GpuCopier : public NeedsGpu, public ::testing::WithParamInterface<std::tuple<MemoryKind, bool>> {
 protected:
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
    Copier copier(kind(), 0, pageable());
    copier.submit(to.data(), from.data(), size, Copier::Towards::host);
    finish(copier);
    EXPECT_FALSE(find_mismatch(to, {.length = size, .seed = size})) << size;
  }
}

TEST_P(GpuCopier, BringsEveryByteToTheGpu) {
  for (const std::uint64_t size : sizes) {
    const Buffer from = bounce(size);
    const Buffer to = payload(size);
    fill_pattern(from, {.length = size, .seed = size});
    scrub(to, {.length = size, .seed = size});
    Copier copier(kind(), 0, pageable());
    copier.submit(to.data(), from.data(), size, Copier::Towards::gpu);
    finish(copier);
    EXPECT_FALSE(find_mismatch(to, {.length = size, .seed = size})) << size;
  }
}

TEST_P(GpuCopier, CountsMoreCopiesInFlightThanItMadeEventsForAndKeepsTheirOrder) {
  constexpr std::uint64_t piece = 64 << 10;
  constexpr std::uint64_t pieces = 500;
  const Buffer there = payload(piece * pieces);
  const Buffer here = bounce(piece * pieces);
  fill_pattern(here, {.length = here.size(), .seed = 1});
  Copier copier(kind(), 0, pageable());
  for (std::uint64_t i = 0; i < pieces; ++i)
    copier.submit(there.data() + i * piece, here.data() + i * piece, piece, Copier::Towards::gpu);
  // On the way back over what has just been sent: in the order of submission this reads the new data.
  const Buffer back = bounce(piece * pieces);
  for (std::uint64_t i = 0; i < pieces; ++i)
    copier.submit(back.data() + i * piece, there.data() + i * piece, piece, Copier::Towards::host);
  EXPECT_EQ(copier.submitted(), 2 * pieces);
  finish(copier);
  EXPECT_EQ(copier.finished(), 2 * pieces);
  EXPECT_FALSE(find_mismatch(back, {.length = back.size(), .seed = 1}));
}

TEST_P(GpuCopier, HasFinishedWhatIsInFlightWhenItIsDestroyed) {
  constexpr std::uint64_t size = 64 << 20;
  const Buffer there = payload(size);
  fill_pattern(there, {.length = size, .seed = 3});
  const Buffer here = bounce(size);
  scrub(here, {.length = size, .seed = 3});
  {
    Copier copier(kind(), 0, pageable());
    copier.submit(here.data(), there.data(), size, Copier::Towards::host);
  }
  EXPECT_FALSE(find_mismatch(here, {.length = size, .seed = 3}));
}

TEST_P(GpuCopier, HasFinishedACopyOfPageableMemoryWhenSubmitReturns) {
  if (!pageable()) GTEST_SKIP() << "pinned copies run on after submit";
  const Buffer there = payload(1 << 20);
  const Buffer here = bounce(1 << 20);
  Copier copier(kind(), 0, true);
  copier.submit(there.data(), here.data(), 1 << 20, Copier::Towards::gpu);
  EXPECT_EQ(copier.finished(), 1U);
}

TEST_P(GpuCopier, WorksFromAnotherThread) {
  const Buffer there = payload(1 << 20);
  const Buffer here = bounce(1 << 20);
  fill_pattern(here, {.length = here.size(), .seed = 2});
  scrub(there, {.length = there.size(), .seed = 2});
  Copier copier(kind(), 0, pageable());
  std::thread([&] {
    copier.submit(there.data(), here.data(), here.size(), Copier::Towards::gpu);
    finish(copier);
  }).join();
  EXPECT_FALSE(find_mismatch(there, {.length = there.size(), .seed = 2}));
}

}  // namespace
}  // namespace gdrbench
