#include <gmock/gmock.h>

#include <limits>

#include "cuda/pointer.hpp"
#include "gdrbench/error.hpp"
#include "needs_gpu.hpp"

namespace gdrbench {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class GpuSummaryOfThisMachine : public NeedsGpu {};
class GpuBuffer : public NeedsGpuMemory {};
class PinnedHostBuffer : public NeedsGpu {};
INSTANTIATE_TEST_SUITE_P(Kinds, GpuBuffer, ::testing::ValuesIn(gpu_memory_kinds), kind_name);

TEST_F(GpuSummaryOfThisMachine, NamesTheGpuAsTheSystemDoes) {
  EXPECT_EQ(summary_.backend, "cuda");
  EXPECT_GE(summary_.count, 1);
  EXPECT_NE(summary_.name, "");
  EXPECT_THAT(summary_.driver, MatchesRegex("[0-9.]+|CUDA [0-9.]+"));
  EXPECT_THAT(summary_.uuid, MatchesRegex("GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"));
  EXPECT_THAT(summary_.pci_address, MatchesRegex("[0-9a-f]+:[0-9a-f][0-9a-f]:[0-9a-f][0-9a-f]\\.0"));
}

TEST_F(GpuSummaryOfThisMachine, SaysThatAGpuBeyondTheLastDoesNotExist) {
  EXPECT_THAT(gpu_summary(summary_.count).unavailable, HasSubstr("does not exist"));
  EXPECT_THROW(Buffer(BufferOptions{.kind = MemoryKind::cuda, .length = 8, .gpu = summary_.count}),
               Unavailable);
}

TEST_P(GpuBuffer, IsGpuMemoryThatStartsOnAnRdmaPage) {
  for (const std::uint64_t length : {1, 4096, (1 << 20) + 1}) {
    const Buffer buffer(BufferOptions{.kind = GetParam(), .length = length});
    EXPECT_EQ(buffer.size(), length);
    EXPECT_TRUE(buffer.view().on_gpu);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % (64 << 10), 0U);
    EXPECT_EQ(cuda::classify(buffer.data()), cuda::PointerKind::device);
    EXPECT_EQ(cuda::classify(buffer.data() + length - 1), cuda::PointerKind::device);
  }
}

TEST_P(GpuBuffer, IsRdmaCapableWhereTheGpuIs) {
  if (!summary_.gpu_direct_rdma) GTEST_SKIP() << summary_.name << " does not support GPUDirect RDMA";
  const Buffer buffer(BufferOptions{.kind = GetParam(), .length = 4096});
  EXPECT_NO_THROW(cuda::require_rdma_capable(buffer.data()));
}

TEST_P(GpuBuffer, GivesItsMemoryBack) {
  // Together more than any GPU of today has.
  for (int i = 0; i < 1000; ++i)
    const Buffer buffer(BufferOptions{.kind = GetParam(), .length = std::uint64_t{1} << 30});
}

TEST_P(GpuBuffer, NamesWhatFailedWhenThereIsTooLittleMemory) {
  try {
    const Buffer buffer(BufferOptions{.kind = GetParam(), .length = std::uint64_t{1} << 46});
    FAIL() << "64 TiB were allocated";
  } catch (const CudaError& error) {
    EXPECT_THAT(error.what(), MatchesRegex(".* of [0-9]+ bytes on GPU 0: .*(out of memory|OUT_OF_MEMORY).*"));
  }
  EXPECT_NO_THROW(Buffer(BufferOptions{.kind = GetParam(), .length = 8})) << "the failure stuck";
}

TEST_P(GpuBuffer, RefusesALengthThatWholePagesWouldOverflow) {
  EXPECT_THROW(Buffer(BufferOptions{.kind = GetParam(), .length = std::numeric_limits<std::uint64_t>::max()}),
               Error);
}

TEST_F(PinnedHostBuffer, IsRegisteredHostMemoryOnlyWhenAsked) {
  const Buffer pinned(BufferOptions{.length = 10'000, .pin_for_gpu = true});
  const Buffer plain(BufferOptions{.length = 10'000});
  EXPECT_EQ(cuda::classify(pinned.data()), cuda::PointerKind::registered_host);
  EXPECT_EQ(cuda::classify(plain.data()), cuda::PointerKind::plain_host);
}

}  // namespace
}  // namespace gdrbench
