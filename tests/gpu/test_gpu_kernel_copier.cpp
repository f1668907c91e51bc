#include <chrono>
#include <vector>

#include "cuda/resident_copy.hpp"
#include "memory/copier.hpp"
#include "needs_gpu.hpp"

namespace gdrbench {
namespace {

using memory::Copier;
using memory::Towards;

constexpr std::uint64_t area_bytes = 1 << 20;

/// Copies by the resident kernel.
class KernelCopier : public NeedsGpu {
 protected:
  static std::unique_ptr<Copier> copier(Towards towards) {
    return memory::make_copier(
        {.payload = MemoryKind::cuda, .towards = towards, .engine = CopyEngine::kernel});
  }
  /// Fails the test instead of hanging it when a copy never ends.
  static void finish(Copier& by) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (by.finished() < by.submitted())
      ASSERT_LT(std::chrono::steady_clock::now(), limit) << by.finished() << " of " << by.submitted();
  }
  /// Pieces of many sizes at odd places, as many in flight as there is room for.
  template <class Submit>
  static void copy_all(Copier& by, Submit submit) {
    for (std::uint64_t offset = 0, size = 1; offset < area_bytes;
         offset += size, size = size * 7 % 16383 + 1) {
      while (!by.has_room()) ASSERT_NO_FATAL_FAILURE(by.finished());
      submit(offset, std::min(size, area_bytes - offset));
    }
    finish(by);
  }
};

TEST_F(KernelCopier, BringsEveryByteToTheHostAndNoneElse) {
  const Buffer from(BufferOptions{.kind = MemoryKind::cuda, .length = area_bytes});
  const Buffer to(BufferOptions{.length = area_bytes + 64, .pin_for_gpu = true});
  fill_pattern(from, {.length = area_bytes, .seed = 1});
  scrub(to, {.length = to.size(), .seed = 1});
  const std::vector<std::byte> guard(to.data() + area_bytes, to.data() + to.size());
  const auto by = copier(Towards::host);
  by->start();
  copy_all(*by, [&](std::uint64_t offset, std::uint64_t size) {
    by->submit(to.data() + offset, from.data() + offset, size);
  });
  by->rest();
  EXPECT_FALSE(find_mismatch(to, {.length = area_bytes, .seed = 1}));
  EXPECT_TRUE(std::equal(guard.begin(), guard.end(), to.data() + area_bytes));
}

TEST_F(KernelCopier, BringsEveryByteToTheGpuAndNoneElse) {
  const Buffer from(BufferOptions{.length = area_bytes, .pin_for_gpu = true});
  const Buffer to(BufferOptions{.kind = MemoryKind::cuda, .length = area_bytes + 64});
  fill_pattern(from, {.length = area_bytes, .seed = 2});
  fill_pattern(to, {.length = to.size(), .seed = 3});
  const auto by = copier(Towards::gpu);
  by->start();
  // The last byte stays as it was.
  copy_all(*by, [&](std::uint64_t offset, std::uint64_t size) {
    if (offset + size == area_bytes) --size;
    if (size > 0) by->submit(to.data() + offset, from.data() + offset, size);
  });
  by->rest();
  EXPECT_FALSE(find_mismatch(to, {.length = area_bytes - 1, .seed = 2}));
  EXPECT_TRUE(find_mismatch(to, {.length = area_bytes, .seed = 2}));
}

TEST_F(KernelCopier, GoesOnAfterARest) {
  const Buffer from(BufferOptions{.kind = MemoryKind::cuda, .length = 4096});
  const Buffer to(BufferOptions{.length = 4096, .pin_for_gpu = true});
  const auto by = copier(Towards::host);
  for (std::uint64_t round = 0; round < 40; ++round) {
    fill_pattern(from, {.length = 4096, .seed = round});
    by->start();
    by->submit(to.data(), from.data(), 4096);
    finish(*by);
    by->rest();
    ASSERT_FALSE(find_mismatch(to, {.length = 4096, .seed = round})) << round;
  }
}

TEST_F(KernelCopier, SeesWhatACopyEngineWroteMeanwhile) {
  const Buffer there(BufferOptions{.kind = MemoryKind::cuda, .length = 4096});
  const Buffer source(BufferOptions{.length = 4096, .pin_for_gpu = true});
  const Buffer back(BufferOptions{.length = 4096, .pin_for_gpu = true});
  const auto engine = memory::make_copier({.payload = MemoryKind::cuda, .towards = Towards::gpu});
  const auto by = copier(Towards::host);
  by->start();
  for (std::uint64_t round = 0; round < 200; ++round) {
    fill_pattern(source, {.length = 4096, .seed = round});
    engine->submit(there.data(), source.data(), 4096);
    finish(*engine);
    by->submit(back.data(), there.data(), 4096);
    finish(*by);
    ASSERT_FALSE(find_mismatch(back, {.length = 4096, .seed = round})) << round;
  }
}

TEST_F(KernelCopier, EndsItsKernelWhenItGoes) {
  for (int i = 0; i < 8; ++i) {
    const auto by = copier(i % 2 == 0 ? Towards::host : Towards::gpu);
    by->start();
  }
  const Buffer waits_for_kernels(BufferOptions{.kind = MemoryKind::cuda, .length = 4096});
  EXPECT_NE(waits_for_kernels.data(), nullptr);
}

}  // namespace
}  // namespace gdrbench
