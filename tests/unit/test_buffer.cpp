#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string>
#include <vector>

#include "gdrbench/error.hpp"
#include "gdrbench/memory.hpp"

namespace gdrbench {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

const std::uint64_t page_bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));

TEST(HostBuffer, IsPageAlignedAndKeepsTheLengthAskedFor) {
  for (const std::uint64_t length : {std::uint64_t{1}, page_bytes - 1, page_bytes, 3 * page_bytes + 5}) {
    const Buffer buffer(BufferOptions{.length = length});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % page_bytes, 0U);
    EXPECT_EQ(buffer.size(), length);
    std::fill_n(buffer.data(), length, std::byte{1});
  }
}

TEST(HostBuffer, GivesAViewWithoutADmabuf) {
  const Buffer buffer(BufferOptions{.length = 100});
  EXPECT_EQ(buffer.kind(), MemoryKind::host);
  EXPECT_EQ(buffer.view().address, buffer.data());
  EXPECT_EQ(buffer.view().length, 100U);
  EXPECT_FALSE(buffer.view().on_gpu);
  EXPECT_EQ(buffer.view().dmabuf_fd, -1);
  EXPECT_EQ(buffer.no_dmabuf_reason(), "");
}

TEST(HostBuffer, HasAllItsPagesFromTheStart) {
  const std::uint64_t pages = 64;
  const Buffer buffer(BufferOptions{.length = pages * page_bytes});
  std::vector<unsigned char> resident(pages);
  ASSERT_EQ(mincore(buffer.data(), buffer.size(), resident.data()), 0);
  EXPECT_TRUE(
      std::all_of(resident.begin(), resident.end(), [](unsigned char page) { return (page & 1) != 0; }));
}

TEST(HostBuffer, IsUsableWithHugePagesWhetherOrNotAnyAreFree) {
  const Buffer buffer(BufferOptions{.length = 3 << 20, .huge_pages = true});
  fill_pattern(buffer, {.length = buffer.size(), .seed = 1});
  EXPECT_FALSE(find_mismatch(buffer, {.length = buffer.size(), .seed = 1}));
}

TEST(HostBuffer, IsUsableWhenPinnedWhetherOrNotThereIsAGpu) {
  const Buffer buffer(BufferOptions{.length = 5000, .pin_for_gpu = true});
  fill_pattern(buffer, {.length = buffer.size(), .seed = 1});
  EXPECT_FALSE(find_mismatch(buffer, {.length = buffer.size(), .seed = 1}));
}

TEST(HostBuffer, RefusesZeroBytes) {
  EXPECT_THROW(Buffer(BufferOptions{.length = 0}), UsageError);
}

TEST(HostBuffer, RefusesMoreThanTheHostHasAndNamesBothNumbers) {
  try {
    const Buffer buffer(BufferOptions{.length = std::uint64_t{1} << 50});
    FAIL() << "1 PiB was allocated";
  } catch (const SystemError& error) {
    EXPECT_EQ(error.code(), ENOMEM);
    EXPECT_THAT(error.what(), HasSubstr("allocating 1125899906842624 bytes (1 PiB) of host memory: ENOMEM"));
    EXPECT_THAT(error.what(),
                MatchesRegex(".*only [0-9]+ bytes \\([0-9.]+ [KMGT]iB\\) are available \\(MemAvailable.*"));
  }
}

TEST(HostBuffer, RefusesALengthThatWholePagesWouldOverflow) {
  for (const std::uint64_t below : {0, 1, 4096})
    EXPECT_THROW(Buffer(BufferOptions{.length = std::numeric_limits<std::uint64_t>::max() - below}),
                 SystemError);
}

TEST(GpuBuffer, SaysWhyItIsUnavailable) {
  const GpuSummary summary = gpu_summary();
  if (summary.unavailable.empty()) GTEST_SKIP() << "this machine has a GPU";
  for (const MemoryKind kind : {MemoryKind::cuda, MemoryKind::cuda_vmm}) {
    try {
      const Buffer buffer(BufferOptions{.kind = kind, .length = 4096});
      FAIL() << to_string(kind) << " memory was allocated";
    } catch (const Unavailable& error) {
      EXPECT_EQ(error.what(), summary.unavailable);
    }
  }
}

TEST(GpuSummary, ExplainsTheLackOfAGpu) {
  const GpuSummary summary = gpu_summary();
  EXPECT_THAT(summary.backend, AnyOf("cuda", "none"));
  if (summary.backend == "none") {
    EXPECT_EQ(summary.unavailable, "built without the CUDA Toolkit");
  }
  EXPECT_EQ(summary.count == 0, !summary.unavailable.empty());
  EXPECT_EQ(summary.name.empty(), !summary.unavailable.empty());
}

TEST(GpuSummary, NamesAGpuThatDoesNotExist) {
  for (const int gpu : {-1, 1 << 20}) EXPECT_NE(gpu_summary(gpu).unavailable, "") << gpu;
}

}  // namespace
}  // namespace gdrbench
