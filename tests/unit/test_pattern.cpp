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
      scrub(buffer, offset, length, 7);
      fill_pattern(buffer, offset, length, 7);
      EXPECT_FALSE(find_mismatch(buffer, offset, length, 7)) << offset << " + " << length;
    }
}

TEST(Pattern, DependsOnThePlaceInTheRangeSoThatAMovedMessagePasses) {
  const Buffer sent = host_buffer();
  const Buffer received = host_buffer();
  fill_pattern(sent, 3, 5000, 11);
  std::memcpy(received.data() + 808, sent.data() + 3, 5000);
  EXPECT_FALSE(find_mismatch(received, 808, 5000, 11));
}

TEST(Pattern, DiffersInEveryWordBetweenSeeds) {
  const Buffer one = host_buffer();
  const Buffer other = host_buffer();
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    fill_pattern(one, 0, buffer_bytes, seed);
    fill_pattern(other, 0, buffer_bytes, seed + 1);
    for (std::uint64_t word = 0; word < buffer_bytes; word += 8)
      ASSERT_NE(std::memcmp(one.data() + word, other.data() + word, 8), 0) << "word at " << word;
  }
}

TEST(Pattern, TellsTheByteAtAnyPosition) {
  const Buffer buffer = host_buffer();
  fill_pattern(buffer, 3, 1021, 9);
  for (std::uint64_t position = 0; position < 1021; ++position)
    ASSERT_EQ(pattern_byte(position, 9), buffer.data()[3 + position]) << position;
}

TEST(Pattern, RepeatsNoWordWithinAMessage) {
  const Buffer buffer = host_buffer();
  fill_pattern(buffer, 0, buffer_bytes, 1);
  std::vector<std::uint64_t> words(buffer_bytes / 8);
  std::memcpy(words.data(), buffer.data(), buffer_bytes);
  std::sort(words.begin(), words.end());
  EXPECT_EQ(std::adjacent_find(words.begin(), words.end()), words.end());
}

TEST(Pattern, FindsDataShiftedByOneWord) {
  const Buffer buffer = host_buffer();
  fill_pattern(buffer, 0, 4096, 5);
  EXPECT_TRUE(find_mismatch(buffer, 8, 4088, 5));
}

TEST(Pattern, NamesTheFirstWrongByteWhereverItIs) {
  const Buffer buffer = host_buffer();
  for (const std::uint64_t length : lengths)
    for (std::uint64_t wrong = 0; wrong < length; wrong += length < 100 ? 1 : 509) {
      fill_pattern(buffer, 5, length, 3);
      std::byte& victim = buffer.data()[5 + wrong];
      const auto right = static_cast<std::uint8_t>(victim);
      victim ^= std::byte{0x10};
      buffer.data()[5 + length - 1] ^= std::byte{0x01};  // a later one as well; the same one at the end
      const auto mismatch = find_mismatch(buffer, 5, length, 3);
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
    fill_pattern(buffer, 9, length, 2);
    scrub(buffer, 9, length, 2);
    const auto untouched = [](std::byte b) { return b == std::byte{0xa5}; };
    EXPECT_TRUE(std::all_of(buffer.data(), buffer.data() + 9, untouched)) << length;
    EXPECT_TRUE(std::all_of(buffer.data() + 9 + length, buffer.data() + buffer_bytes, untouched)) << length;
  }
}

TEST(Scrub, LeavesNoByteThatThePatternHas) {
  const Buffer buffer = host_buffer();
  for (const std::uint64_t length : lengths) {
    fill_pattern(buffer, 1, length, 9);
    const auto pattern = bytes_of(buffer, 1, length);
    scrub(buffer, 1, length, 9);
    const auto scrubbed = bytes_of(buffer, 1, length);
    for (std::size_t i = 0; i < length; ++i) ASSERT_NE(scrubbed[i], pattern[i]) << i << " of " << length;
    const auto mismatch = find_mismatch(buffer, 1, length, 9);
    ASSERT_TRUE(mismatch);
    EXPECT_EQ(mismatch->offset, 0U);
  }
}

TEST(Pattern, RefusesARangeOutsideTheBuffer) {
  const Buffer buffer = host_buffer();
  EXPECT_NO_THROW(fill_pattern(buffer, buffer_bytes, 0, 1));
  EXPECT_THROW(fill_pattern(buffer, 0, buffer_bytes + 1, 1), Error);
  EXPECT_THROW(scrub(buffer, buffer_bytes, 1, 1), Error);
  EXPECT_THROW(find_mismatch(buffer, 8, ~std::uint64_t{0}, 1), Error) << "the sum wraps";
}

}  // namespace
}  // namespace gdrbench
