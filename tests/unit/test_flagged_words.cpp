#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "cuda/flagged_words.hpp"

namespace gdrbench::cuda {
namespace {

std::vector<std::byte> some_bytes(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 + 7);
  return bytes;
}

TEST(FlaggedWords, GiveBackEveryByteOfEveryLength) {
  for (std::size_t size = 1; size <= 100; ++size) {
    const std::vector<std::byte> data = some_bytes(size);
    std::vector<std::uint64_t> words(flagged_bytes(size) / 8);
    auto* const place = reinterpret_cast<std::byte*>(words.data());
    write_flagged(place, data.data(), size, 9);
    std::vector<std::byte> back(size + 1, std::byte{0xee});
    EXPECT_EQ(read_flagged(back.data(), place, size, 9, 0), size);
    EXPECT_TRUE(std::equal(data.begin(), data.end(), back.begin())) << size;
    EXPECT_EQ(back[size], std::byte{0xee}) << size << ": written past the end";
  }
}

TEST(FlaggedWords, OfAnotherFlagAreNotThere) {
  const std::vector<std::byte> data = some_bytes(64);
  alignas(16) std::byte words[flagged_bytes(64)];
  write_flagged(words, data.data(), 64, 3);
  std::vector<std::byte> back(64);
  EXPECT_EQ(read_flagged(back.data(), words, 64, 4, 0), 0U);
}

TEST(FlaggedWords, AreTakenAsFarAsTheyHaveArrivedAndFromThereOn) {
  const std::vector<std::byte> data = some_bytes(61);
  alignas(16) std::byte words[flagged_bytes(61)];
  write_flagged(words, data.data(), 61, 5);
  // One word in the middle is late: the second of the pair that holds bytes 24 to 31.
  std::uint64_t late = 0;
  std::byte* const place = words + 7 * sizeof late;
  std::memcpy(&late, place, sizeof late);
  std::memset(place, 0, sizeof late);
  std::vector<std::byte> back(61);
  EXPECT_EQ(read_flagged(back.data(), words, 61, 5, 0), 24U);
  EXPECT_EQ(read_flagged(back.data(), words, 61, 5, 24), 24U);
  std::memcpy(place, &late, sizeof late);
  EXPECT_EQ(read_flagged(back.data(), words, 61, 5, 24), 61U);
  EXPECT_EQ(back, data);
}

}  // namespace
}  // namespace gdrbench::cuda
