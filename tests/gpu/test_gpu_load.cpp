#include <chrono>
#include <cstdio>
#include <functional>
#include <thread>

#include "cuda/resident.hpp"
#include "measure/load_meter.hpp"
#include "memory/copier.hpp"
#include "needs_gpu.hpp"

// Between start() and stop() a test makes nothing that waits for the GPU, and leaves only by its end.
namespace gdrbench {
namespace {

using namespace std::chrono_literals;
using cuda::GpuLoad;
using cuda::LoadKind;

class GpuLoadOf : public NeedsGpu, public ::testing::WithParamInterface<LoadKind> {};
std::string load_name(const ::testing::TestParamInfo<LoadKind>& kind) {
  return kind.param == LoadKind::compute ? "compute" : "memory";
}
INSTANTIATE_TEST_SUITE_P(Kinds, GpuLoadOf, ::testing::Values(LoadKind::compute, LoadKind::memory), load_name);

bool comes_true_within(std::chrono::milliseconds limit, const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST_P(GpuLoadOf, CountsWorkUntilItIsStopped) {
  GpuLoad load(0, GetParam());
  EXPECT_EQ(load.units(), 0U);
  for (int round = 0; round < 2; ++round) {
    load.start();
    EXPECT_TRUE(comes_true_within(10s, [&] { return load.units() > 0; }));
    const std::uint64_t before = load.units();
    EXPECT_TRUE(comes_true_within(10s, [&] { return load.units() > before + 10 * load.blocks(); }));
    const auto begun = std::chrono::steady_clock::now();
    load.stop();
    EXPECT_LT(std::chrono::steady_clock::now() - begun, 1s);
    const std::uint64_t done = load.units();
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(load.units(), done);
  }
}

TEST_P(GpuLoadOf, KeepsAllOfTheGpuBusyAtASteadyRate) {
  measure::LoadMeter meter(
      measure::make_load(GetParam() == LoadKind::compute ? Load::compute : Load::memory, 0));
  meter.start();
  meter.begin();
  std::this_thread::sleep_for(50ms);
  const LoadRates rates = meter.end();
  meter.stop();
  EXPECT_GT(rates.alone_units_per_second, 0);
  EXPECT_NEAR(rates.together_units_per_second / rates.alone_units_per_second, 1, 0.2);
  std::printf("%.3g units/s alone, %.3g later\n", rates.alone_units_per_second,
              rates.together_units_per_second);
}

TEST_P(GpuLoadOf, LeavesRoomForAnotherKernelAndForCopies) {
  constexpr std::uint64_t size = 64 << 10;
  const Buffer source({.length = size, .pin_for_gpu = true});
  const Buffer target({.kind = MemoryKind::cuda, .length = size});
  fill_pattern(source, {.length = size, .seed = 1});
  scrub(target, {.length = size, .seed = 1});
  const auto copier = memory::make_copier({.payload = MemoryKind::cuda, .towards = memory::Towards::gpu});
  cuda::GpuWatcher watcher(0);
  GpuLoad load(0, GetParam());

  load.start();
  EXPECT_TRUE(comes_true_within(10s, [&] { return load.units() > 0; }));
  watcher.start(target.data() + size - 1, pattern_byte(size - 1, 1), 10);
  for (std::uint64_t sent = 1; sent <= 10; ++sent) {
    copier->submit(target.data(), source.data(), size);
    EXPECT_TRUE(comes_true_within(10s, [&] { return watcher.seen() == sent; })) << sent;
  }
  const std::uint64_t before = load.units();
  EXPECT_TRUE(comes_true_within(10s, [&] { return load.units() > before; })) << "the load stands still";
  watcher.stop();
  load.stop();
  EXPECT_FALSE(find_mismatch(target, {.length = size - 1, .seed = 1}));
}

TEST_P(GpuLoadOf, EndsWithItsObject) {
  GpuLoad load(0, GetParam());
  load.start();
}  // and would hang here

}  // namespace
}  // namespace gdrbench
