#include <gtest/gtest.h>

#include <vector>

#include "gdrbench/error.hpp"
#include "gdrbench/memory.hpp"
#include "memory/copier.hpp"

namespace gdrbench::memory {
namespace {

TEST(HostCopier, HasFinishedACopyWhenSubmitReturns) {
  const Buffer payload(BufferOptions{.length = 4097});
  const Buffer bounce(BufferOptions{.length = 4097});
  fill_pattern(payload, {.length = 4097, .seed = 5});
  const auto copier = make_copier({.towards = Towards::host});
  EXPECT_EQ(copier->finished(), 0U);
  copier->submit(bounce.data(), payload.data(), 4097);
  EXPECT_EQ(copier->submitted(), 1U);
  EXPECT_EQ(copier->finished(), 1U);
  EXPECT_FALSE(find_mismatch(bounce, {.length = 4097, .seed = 5}));
}

TEST(HostCopier, IsTheCpuWhateverTheEngine) {
  const std::byte from{7};
  std::byte to{0};
  const auto copier = make_copier({.towards = Towards::gpu, .engine = CopyEngine::kernel});
  copier->start();
  copier->submit(&to, &from, 1);
  copier->rest();
  EXPECT_EQ(to, from);
}

TEST(GpuCopier, SaysWhyItIsUnavailable) {
  const std::string why = gpu_summary().unavailable;
  if (why.empty()) GTEST_SKIP() << "there is a GPU";
  for (const CopyEngine engine : {CopyEngine::copy_engine, CopyEngine::kernel}) try {
      make_copier({.payload = MemoryKind::cuda, .engine = engine});
      FAIL() << "a copier without a GPU";
    } catch (const Unavailable& unavailable) {
      EXPECT_EQ(unavailable.what(), why);
    }
}

}  // namespace
}  // namespace gdrbench::memory
