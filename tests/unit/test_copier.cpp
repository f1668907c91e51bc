#include <gtest/gtest.h>

#include <utility>

#include "gdrbench/error.hpp"
#include "gdrbench/memory.hpp"

namespace gdrbench {
namespace {

TEST(HostCopier, HasFinishedACopyWhenSubmitReturns) {
  const Buffer payload(BufferOptions{.length = 1 << 20});
  const Buffer bounce(BufferOptions{.length = 1 << 20});
  fill_pattern(payload, {.length = payload.size(), .seed = 4});
  scrub(bounce, {.length = bounce.size(), .seed = 4});
  Copier copier(MemoryKind::host, 0, false);
  EXPECT_EQ(copier.submitted(), 0U);
  EXPECT_EQ(copier.finished(), 0U);

  copier.submit(bounce.data(), payload.data(), 4097, Copier::Towards::host);
  EXPECT_EQ(copier.submitted(), 1U);
  EXPECT_EQ(copier.finished(), 1U);
  EXPECT_FALSE(find_mismatch(bounce, {.length = 4097, .seed = 4}));
  const auto beyond = find_mismatch(bounce, {.length = 4098, .seed = 4});
  ASSERT_TRUE(beyond) << "more was copied than asked for";
  EXPECT_EQ(beyond->offset, 4097U);
}

TEST(HostCopier, CopiesBothWaysInTheOrderOfSubmission) {
  const Buffer payload(BufferOptions{.length = 4096});
  const Buffer bounce(BufferOptions{.length = 4096});
  Copier copier(MemoryKind::host, 0, true);
  fill_pattern(payload, {.length = 4096, .seed = 1});
  copier.submit(bounce.data(), payload.data(), 4096, Copier::Towards::host);
  scrub(payload, {.length = 4096, .seed = 1});
  copier.submit(payload.data(), bounce.data(), 4096, Copier::Towards::gpu);
  EXPECT_FALSE(find_mismatch(payload, {.length = 4096, .seed = 1}));
  EXPECT_EQ(copier.finished(), 2U);
}

TEST(HostCopier, KeepsItsCountWhenMoved) {
  std::byte from{7};
  std::byte to{0};
  Copier first(MemoryKind::host, 0, false);
  first.submit(&to, &from, 1, Copier::Towards::gpu);
  Copier second(std::move(first));
  second.submit(&to, &from, 1, Copier::Towards::gpu);
  EXPECT_EQ(second.submitted(), 2U);
  EXPECT_EQ(second.finished(), 2U);
}

TEST(GpuCopier, SaysWhyItIsUnavailable) {
  const GpuSummary summary = gpu_summary();
  if (summary.unavailable.empty()) GTEST_SKIP() << "this machine has a GPU";
  try {
    const Copier copier(MemoryKind::cuda, 0, false);
    FAIL() << "a copier for GPU memory was made";
  } catch (const Unavailable& error) {
    EXPECT_EQ(error.what(), summary.unavailable);
  }
}

}  // namespace
}  // namespace gdrbench
