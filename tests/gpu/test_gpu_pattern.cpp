#include "cuda/stream.hpp"
#include "gdrbench/error.hpp"
#include "needs_gpu.hpp"

namespace gdrbench {
namespace {

/// Around the edges of words and of the pieces in which GPU memory passes through the host.
constexpr std::uint64_t lengths[] = {1, 3, 4096, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (64 << 20) - 5};

class GpuPattern : public NeedsGpuMemory {
 protected:
  Buffer payload() const { return Buffer(BufferOptions{.kind = GetParam(), .length = 64 << 20}); }
};
INSTANTIATE_TEST_SUITE_P(Kinds, GpuPattern, ::testing::ValuesIn(gpu_memory_kinds), kind_name);

TEST_P(GpuPattern, PassesItsOwnCheckAndNoOther) {
  const Buffer buffer = payload();
  for (const std::uint64_t offset : {0, 5})
    for (const std::uint64_t length : lengths) {
      scrub(buffer, offset, length, 1);
      const auto scrubbed = find_mismatch(buffer, offset, length, 1);
      ASSERT_TRUE(scrubbed) << offset << " + " << length;
      EXPECT_EQ(scrubbed->offset, 0U);
      fill_pattern(buffer, offset, length, 1);
      EXPECT_FALSE(find_mismatch(buffer, offset, length, 1)) << offset << " + " << length;
    }
  EXPECT_TRUE(find_mismatch(buffer, 5, 4096, 2)) << "another seed";
}

TEST_P(GpuPattern, IsThatOfHostMemory) {
  const std::uint64_t size = (3 << 20) + 7;
  const Buffer there = payload();
  const Buffer here(BufferOptions{.length = size, .pin_for_gpu = true});
  fill_pattern(here, 0, size, 8);
  cuda::copy_and_wait(0, there.data() + 100, here.data(), size, cuda::CopyKind::host_to_gpu);
  EXPECT_FALSE(find_mismatch(there, 100, size, 8));
}

TEST_P(GpuPattern, NamesTheFirstWrongByteWhereverItIs) {
  const Buffer buffer = payload();
  for (const std::uint64_t wrong : {0, 4096, (1 << 20) - 8, 1 << 20, (5 << 20) + 8}) {
    fill_pattern(buffer, 0, buffer.size(), 6);
    // From here on the words of another message: they differ in each word, so within the first eight bytes.
    fill_pattern(buffer, wrong, buffer.size() - wrong, 7);
    const auto mismatch = find_mismatch(buffer, 0, buffer.size(), 6);
    ASSERT_TRUE(mismatch) << wrong;
    EXPECT_GE(mismatch->offset, wrong);
    EXPECT_LT(mismatch->offset, wrong + 8);
    EXPECT_NE(mismatch->expected, mismatch->found);
  }
}

TEST_P(GpuPattern, WritesNothingOutsideTheRange) {
  const Buffer buffer = payload();
  fill_pattern(buffer, 0, 4096, 1);
  fill_pattern(buffer, 4096, 4096, 2);
  scrub(buffer, 4000, 96, 3);
  EXPECT_FALSE(find_mismatch(buffer, 0, 4000, 1));
  EXPECT_FALSE(find_mismatch(buffer, 4096, 4096, 2));
}

}  // namespace
}  // namespace gdrbench
