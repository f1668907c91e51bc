#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "cuda/stream.hpp"
#include "gdrbench/error.hpp"
#include "needs_gpu.hpp"
#include "resident_kernel.hpp"

namespace gdrbench {
namespace {

constexpr std::uint64_t buffer_bytes = (64 << 20) + 64;
/// Around the edges of words, of the largest access and of what a block of threads does at once (16 KiB).
constexpr std::uint64_t lengths[] = {
    1,     3,     7,     8,          9,      15,     16,      17,      63,       4096,
    16383, 16384, 16385, 16384 + 24, 100000, 999999, 1 << 20, 5 << 20, 64 << 20, (64 << 20) + 1};

class GpuPattern : public NeedsGpuMemory {
 protected:
  static Buffer payload(std::uint64_t length = buffer_bytes) {
    return Buffer(BufferOptions{.kind = GetParam(), .length = length});
  }
  static void copy(std::byte* to, const std::byte* from, std::uint64_t length, cuda::CopyKind kind) {
    cuda::Stream stream(0);
    stream.copy(to, from, length, kind);
    stream.wait();
  }
  static std::vector<std::byte> bytes_of(const Buffer& buffer, std::uint64_t offset, std::uint64_t length) {
    std::vector<std::byte> bytes(length);
    copy(bytes.data(), buffer.data() + offset, length, cuda::CopyKind::gpu_to_host);
    return bytes;
  }
  static void flip_bit(const Buffer& buffer, std::uint64_t offset) {
    std::byte byte = bytes_of(buffer, offset, 1).front() ^ std::byte{0x10};
    copy(buffer.data() + offset, &byte, 1, cuda::CopyKind::host_to_gpu);
  }
};
INSTANTIATE_TEST_SUITE_P(Kinds, GpuPattern, ::testing::ValuesIn(gpu_memory_kinds), kind_name);

TEST_P(GpuPattern, PassesItsOwnCheckAndNoOther) {
  const Buffer buffer = payload();
  for (const std::uint64_t offset : {0, 5, 16, 64})
    for (const std::uint64_t length : lengths) {
      if (offset + length > buffer.size()) continue;
      SCOPED_TRACE(std::to_string(offset) + " + " + std::to_string(length));
      const PatternSlots slot{.offset = offset, .length = length, .seed = 1};
      scrub(buffer, slot);
      const auto scrubbed = find_mismatch(buffer, slot);
      ASSERT_TRUE(scrubbed);
      EXPECT_EQ(scrubbed->slot, 0U);
      EXPECT_EQ(scrubbed->offset, 0U);
      fill_pattern(buffer, slot);
      EXPECT_FALSE(find_mismatch(buffer, slot));
    }
  EXPECT_TRUE(find_mismatch(buffer, {.offset = 5, .length = 4096, .seed = 2})) << "another seed";
}

TEST_P(GpuPattern, IsByteForByteThatOfHostMemory) {
  const Buffer there = payload();
  const Buffer here(BufferOptions{.length = buffer_bytes});
  for (const std::uint64_t length : lengths) {
    const PatternSlots slot{.length = length, .seed = length};
    for (const bool scrubbed : {false, true}) {
      SCOPED_TRACE(std::to_string(length) + (scrubbed ? " scrubbed" : ""));
      (scrubbed ? scrub : fill_pattern)(here, slot);
      (scrubbed ? scrub : fill_pattern)(there, slot);
      EXPECT_EQ(std::memcmp(bytes_of(there, 0, length).data(), here.data(), length), 0);
    }
  }
}

TEST_P(GpuPattern, OfManySlotsIsThatOfHostMemoryWithNothingBetweenThem) {
  struct Shape {
    std::uint64_t length, stride, count;
  };
  for (const Shape& shape :
       {Shape{8, 64, 4096}, Shape{1, 64, 4096}, Shape{4095, 4096, 4096},
        Shape{(1 << 20) + 1, (1 << 20) + 64, 60}, Shape{100, 104, 3000}, Shape{64, 64, 200'000}}) {
    SCOPED_TRACE(shape.length);
    const Buffer there = payload();
    const Buffer here(BufferOptions{.length = buffer_bytes});
    scrub(here, {.length = buffer_bytes, .seed = 3});
    scrub(there, {.length = buffer_bytes, .seed = 3});
    const PatternSlots slots{
        .offset = 64, .length = shape.length, .stride = shape.stride, .count = shape.count, .seed = 40};
    fill_pattern(here, slots);
    fill_pattern(there, slots);
    EXPECT_EQ(std::memcmp(bytes_of(there, 0, buffer_bytes).data(), here.data(), buffer_bytes), 0);
    EXPECT_FALSE(find_mismatch(there, slots));
  }
}

TEST_P(GpuPattern, NamesTheFirstWrongByteWhereverItIs) {
  const Buffer buffer = payload();
  const std::uint64_t length = (64 << 20) + 1;
  const PatternSlots slot{.length = length, .seed = 6};
  fill_pattern(buffer, slot);
  flip_bit(buffer, length - 1);
  // From the last to the first, so that there are always later ones too.
  for (const std::uint64_t wrong :
       {length - 1, length - 2, std::uint64_t{50'000'003}, std::uint64_t{(1 << 20) + 9},
        std::uint64_t{1 << 20}, std::uint64_t{16384}, std::uint64_t{16383}, std::uint64_t{15},
        std::uint64_t{8}, std::uint64_t{0}}) {
    SCOPED_TRACE(wrong);
    if (wrong != length - 1) flip_bit(buffer, wrong);
    const auto mismatch = find_mismatch(buffer, slot);
    ASSERT_TRUE(mismatch);
    EXPECT_EQ(mismatch->offset, wrong);
    EXPECT_EQ(mismatch->expected ^ mismatch->found, 0x10);
    EXPECT_EQ(mismatch->found, static_cast<std::uint8_t>(bytes_of(buffer, wrong, 1).front()));
  }
}

TEST_P(GpuPattern, NamesTheFirstSlotWithAWrongByte) {
  const Buffer buffer = payload();
  for (const std::uint64_t length : {61, 4093, 40'000}) {
    const std::uint64_t stride = (length + 63) / 64 * 64;
    const PatternSlots slots{.length = length, .stride = stride, .count = 1000, .seed = 9};
    fill_pattern(buffer, slots);
    flip_bit(buffer, 800 * stride);
    flip_bit(buffer, 801 * stride - 1);  // at the end of slot 800, or in the gap behind it
    flip_bit(buffer, 799 * stride + length - 1);
    const auto mismatch = find_mismatch(buffer, slots);
    ASSERT_TRUE(mismatch) << length;
    EXPECT_EQ(mismatch->slot, 799U);
    EXPECT_EQ(mismatch->offset, length - 1);
  }
}

TEST_P(GpuPattern, WritesNothingOutsideTheRange) {
  const Buffer buffer = payload();
  fill_pattern(buffer, {.length = 4096, .seed = 1});
  fill_pattern(buffer, {.offset = 4096, .length = 4096, .seed = 2});
  scrub(buffer, {.offset = 4000, .length = 96, .seed = 3});
  EXPECT_FALSE(find_mismatch(buffer, {.length = 4000, .seed = 1}));
  EXPECT_FALSE(find_mismatch(buffer, {.offset = 4096, .length = 4096, .seed = 2}));
}

TEST_P(GpuPattern, WorksBeyondFourGigabytes) {
  const std::uint64_t length = (std::uint64_t{4} << 30) + 100;
  std::optional<Buffer> allocated;
  try {
    allocated.emplace(BufferOptions{.kind = GetParam(), .length = length});
  } catch (const CudaError& error) {
    GTEST_SKIP() << error.what();
  }
  const Buffer& buffer = *allocated;
  const PatternSlots slot{.length = length, .seed = 4};
  scrub(buffer, slot);
  fill_pattern(buffer, slot);
  EXPECT_FALSE(find_mismatch(buffer, slot));
  flip_bit(buffer, length - 1);
  const auto mismatch = find_mismatch(buffer, slot);
  ASSERT_TRUE(mismatch);
  EXPECT_EQ(mismatch->offset, length - 1);
}

TEST_P(GpuPattern, MayBeUsedByTwoThreadsOnOneBuffer) {
  const Buffer buffer = payload();
  std::vector<int> faults(2);
  std::vector<std::thread> threads;
  for (const std::uint64_t half : {0, 1})
    threads.emplace_back([&, half] {
      for (std::uint64_t round = 0; round < 50; ++round) {
        const PatternSlots slot{.offset = half << 20, .length = 1 << 20, .seed = 2 * round + half};
        fill_pattern(buffer, slot);
        if (find_mismatch(buffer, slot)) ++faults[half];
        scrub(buffer, slot);
        if (!find_mismatch(buffer, slot)) ++faults[half];
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(faults, std::vector<int>(2));
}

TEST_P(GpuPattern, WaitsForNoKernelThatRunsOn) {
  const Buffer buffer = payload(1 << 20);
  const PatternSlots odd{.offset = 1, .length = 1000, .seed = 2};
  const PatternSlots slots{.offset = 4096, .length = 4096, .stride = 4096, .count = 100, .seed = 3};
  const ResidentKernel resident;
  for (const PatternSlots& each : {odd, slots}) {
    scrub(buffer, each);
    EXPECT_TRUE(find_mismatch(buffer, each));
    fill_pattern(buffer, each);
    EXPECT_FALSE(find_mismatch(buffer, each));
  }
  EXPECT_TRUE(resident.runs()) << "something waited until its time was over";
}

TEST_P(GpuPattern, RefusesARangeOutsideTheBuffer) {
  const Buffer buffer = payload(4096);
  EXPECT_THROW(fill_pattern(buffer, {.length = 4097}), Error);
  EXPECT_THROW(scrub(buffer, {.length = 64, .stride = 64, .count = 65}), Error);
  EXPECT_FALSE(find_mismatch(buffer, {.offset = 4096}));
}

}  // namespace
}  // namespace gdrbench
