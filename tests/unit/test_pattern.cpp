#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "gdrbench/error.hpp"
#include "gdrbench/memory.hpp"

namespace gdrbench {
namespace {

constexpr std::uint64_t buffer_bytes = 64 << 10;
/// Around every edge of words, compared blocks and pages.
constexpr std::uint64_t lengths[] = {1, 2, 7, 8, 9, 15, 16, 63, 64, 65, 4095, 4096, 4097, 8191, 12289, 40000};
constexpr std::uint64_t offsets[] = {0, 1, 7, 8, 4096, 4099};

Buffer host_buffer() {
  return Buffer(BufferOptions{.length = buffer_bytes});
}

std::vector<std::byte> bytes_of(const Buffer& buffer, std::uint64_t offset, std::uint64_t length) {
  return {buffer.data() + offset, buffer.data() + offset + length};
}

TEST(Pattern, PassesItsOwnCheckAtEveryOffsetAndLength) {
  const Buffer buffer = host_buffer();
  for (const std::uint64_t offset : offsets)
    for (const std::uint64_t length : lengths) {
      scrub(buffer, {.offset = offset, .length = length, .seed = 7});
      fill_pattern(buffer, {.offset = offset, .length = length, .seed = 7});
      EXPECT_FALSE(find_mismatch(buffer, {.offset = offset, .length = length, .seed = 7}))
          << offset << " + " << length;
    }
}

TEST(Pattern, DependsOnThePlaceInTheRangeSoThatAMovedMessagePasses) {
  const Buffer sent = host_buffer();
  const Buffer received = host_buffer();
  fill_pattern(sent, {.offset = 3, .length = 5000, .seed = 11});
  std::memcpy(received.data() + 808, sent.data() + 3, 5000);
  EXPECT_FALSE(find_mismatch(received, {.offset = 808, .length = 5000, .seed = 11}));
}

TEST(Pattern, DiffersInEveryWordBetweenSeeds) {
  const Buffer one = host_buffer();
  const Buffer other = host_buffer();
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    fill_pattern(one, {.length = buffer_bytes, .seed = seed});
    fill_pattern(other, {.length = buffer_bytes, .seed = seed + 1});
    for (std::uint64_t word = 0; word < buffer_bytes; word += 8)
      ASSERT_NE(std::memcmp(one.data() + word, other.data() + word, 8), 0) << "word at " << word;
  }
}

TEST(Pattern, TellsTheByteAtAnyPosition) {
  const Buffer buffer = host_buffer();
  fill_pattern(buffer, {.offset = 3, .length = 1021, .seed = 9});
  for (std::uint64_t position = 0; position < 1021; ++position)
    ASSERT_EQ(pattern_byte(position, 9), buffer.data()[3 + position]) << position;
}

TEST(Pattern, RepeatsNoWordWithinAMessage) {
  const Buffer buffer = host_buffer();
  fill_pattern(buffer, {.length = buffer_bytes, .seed = 1});
  std::vector<std::uint64_t> words(buffer_bytes / 8);
  std::memcpy(words.data(), buffer.data(), buffer_bytes);
  std::sort(words.begin(), words.end());
  EXPECT_EQ(std::adjacent_find(words.begin(), words.end()), words.end());
}

TEST(Pattern, FindsDataShiftedByOneWord) {
  const Buffer buffer = host_buffer();
  fill_pattern(buffer, {.length = 4096, .seed = 5});
  EXPECT_TRUE(find_mismatch(buffer, {.offset = 8, .length = 4088, .seed = 5}));
}

TEST(Pattern, NamesTheFirstWrongByteWhereverItIs) {
  const Buffer buffer = host_buffer();
  for (const std::uint64_t length : lengths)
    for (std::uint64_t wrong = 0; wrong < length; wrong += length < 100 ? 1 : 509) {
      fill_pattern(buffer, {.offset = 5, .length = length, .seed = 3});
      std::byte& victim = buffer.data()[5 + wrong];
      const auto right = static_cast<std::uint8_t>(victim);
      victim ^= std::byte{0x10};
      buffer.data()[5 + length - 1] ^= std::byte{0x01};  // a later one as well; the same one at the end
      const auto mismatch = find_mismatch(buffer, {.offset = 5, .length = length, .seed = 3});
      ASSERT_TRUE(mismatch) << wrong << " of " << length;
      EXPECT_EQ(mismatch->offset, wrong);
      EXPECT_EQ(mismatch->expected, right);
      EXPECT_EQ(mismatch->found, static_cast<std::uint8_t>(victim));
    }
}

TEST(Pattern, WritesNothingOutsideTheRange) {
  const Buffer buffer = host_buffer();
  for (const std::uint64_t length : lengths) {
    std::fill_n(buffer.data(), buffer_bytes, std::byte{0xa5});
    fill_pattern(buffer, {.offset = 9, .length = length, .seed = 2});
    scrub(buffer, {.offset = 9, .length = length, .seed = 2});
    const auto untouched = [](std::byte b) { return b == std::byte{0xa5}; };
    EXPECT_TRUE(std::all_of(buffer.data(), buffer.data() + 9, untouched)) << length;
    EXPECT_TRUE(std::all_of(buffer.data() + 9 + length, buffer.data() + buffer_bytes, untouched)) << length;
  }
}

TEST(Scrub, LeavesNoByteThatThePatternHas) {
  const Buffer buffer = host_buffer();
  for (const std::uint64_t length : lengths) {
    fill_pattern(buffer, {.offset = 1, .length = length, .seed = 9});
    const auto pattern = bytes_of(buffer, 1, length);
    scrub(buffer, {.offset = 1, .length = length, .seed = 9});
    const auto scrubbed = bytes_of(buffer, 1, length);
    for (std::size_t i = 0; i < length; ++i) ASSERT_NE(scrubbed[i], pattern[i]) << i << " of " << length;
    const auto mismatch = find_mismatch(buffer, {.offset = 1, .length = length, .seed = 9});
    ASSERT_TRUE(mismatch);
    EXPECT_EQ(mismatch->offset, 0U);
  }
}

TEST(PatternSlots, HaveEachThePatternOfItsOwnSeedAndNothingBetweenThem) {
  const Buffer buffer = host_buffer();
  for (const std::uint64_t length : {1, 100, 128}) {
    std::fill_n(buffer.data(), buffer_bytes, std::byte{0xa5});
    const PatternSlots slots{.offset = 64, .length = length, .stride = 128, .count = 50, .seed = 30};
    scrub(buffer, slots);
    fill_pattern(buffer, slots);
    EXPECT_FALSE(find_mismatch(buffer, slots));
    for (std::uint64_t i = 0; i < slots.count; ++i) {
      const std::uint64_t offset = 64 + i * 128;
      EXPECT_FALSE(find_mismatch(buffer, {.offset = offset, .length = length, .seed = 30 + i})) << i;
      for (std::uint64_t beyond = offset + length; beyond < offset + 128; ++beyond)
        ASSERT_EQ(buffer.data()[beyond], std::byte{0xa5}) << beyond;
    }
    EXPECT_EQ(buffer.data()[63], std::byte{0xa5});
  }
}

TEST(PatternSlots, NameTheFirstSlotWithAWrongByte) {
  const Buffer buffer = host_buffer();
  const PatternSlots slots{.length = 1000, .stride = 1024, .count = 64, .seed = 3};
  fill_pattern(buffer, slots);
  buffer.data()[17 * 1024 + 999] ^= std::byte{1};
  buffer.data()[18 * 1024] ^= std::byte{1};
  const auto mismatch = find_mismatch(buffer, slots);
  ASSERT_TRUE(mismatch);
  EXPECT_EQ(mismatch->slot, 17U);
  EXPECT_EQ(mismatch->offset, 999U);
}

TEST(PatternSlots, HoldNothingWhenThereAreNone) {
  const Buffer buffer = host_buffer();
  scrub(buffer, {.length = buffer_bytes, .seed = 1});
  EXPECT_FALSE(find_mismatch(buffer, {.length = 8, .stride = 8, .count = 0, .seed = 1}));
  EXPECT_FALSE(find_mismatch(buffer, {.length = 0, .stride = 8, .count = 5, .seed = 1}));
}

TEST(PatternSlots, AreRefusedWhenTheLastOneIsNotInsideTheBuffer) {
  const Buffer buffer = host_buffer();
  const std::uint64_t count = buffer_bytes / 64;
  EXPECT_NO_THROW(scrub(buffer, {.length = 64, .stride = 64, .count = count}));
  EXPECT_THROW(scrub(buffer, {.length = 65, .stride = 64, .count = count}), Error);
  EXPECT_THROW(scrub(buffer, {.length = 64, .stride = 64, .count = count + 1}), Error);
  EXPECT_THROW(scrub(buffer, {.length = 1, .stride = std::uint64_t{1} << 63, .count = 3}), Error)
      << "the product wraps";
}

TEST(Pattern, RefusesARangeOutsideTheBuffer) {
  const Buffer buffer = host_buffer();
  EXPECT_NO_THROW(fill_pattern(buffer, {.offset = buffer_bytes, .length = 0, .seed = 1}));
  EXPECT_THROW(fill_pattern(buffer, {.length = buffer_bytes + 1, .seed = 1}), Error);
  EXPECT_THROW(scrub(buffer, {.offset = buffer_bytes, .length = 1, .seed = 1}), Error);
  EXPECT_THROW(find_mismatch(buffer, {.offset = 8, .length = ~std::uint64_t{0}, .seed = 1}), Error)
      << "the sum wraps";
}

}  // namespace
}  // namespace gdrbench
