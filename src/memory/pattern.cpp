#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "cuda/device.hpp"
#include "cuda/stream.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/memory.hpp"

namespace gdrbench {
namespace {

constexpr std::uint64_t word_bytes = 8;
/// GPU memory passes through host memory in pieces of this size; a multiple of the word.
constexpr std::uint64_t bounce_bytes = 1 << 20;

/// The words of one seed. Multipliers and increment are those of SplitMix64 (Steele, Lea and Flood, "Fast
/// splittable pseudorandom number generators", 2014); one multiplication a word keeps up with memory. Both
/// steps are bijections: words of one seed all differ, and so do those of two seeds at the same position.
class Pattern {
 public:
  explicit Pattern(std::uint64_t seed) : start_(scramble(seed + increment) * 0x94d049bb133111ebU) {}

  /// Walks the words from a given one on.
  class Words {
   public:
    std::uint64_t next() {
      const std::uint64_t word = scramble(state_);
      state_ += increment;
      return word;
    }

   private:
    friend class Pattern;
    explicit Words(std::uint64_t state) : state_(state) {}
    std::uint64_t state_;
  };
  Words from(std::uint64_t word) const { return Words(start_ + word * increment); }

 private:
  static constexpr std::uint64_t increment = 0x9e3779b97f4a7c15U;
  static constexpr std::uint64_t scramble(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    return x ^ (x >> 31);
  }
  std::uint64_t start_;
};

/// Writes the words from `first_word` on, each xor `flip`; the last one is cut where the range ends.
void write_words(std::byte* out, std::uint64_t length, Pattern pattern, std::uint64_t first_word,
                 std::uint64_t flip) {
  Pattern::Words words = pattern.from(first_word);
  std::byte* const whole_end = out + length / word_bytes * word_bytes;
  for (; out != whole_end; out += word_bytes) {
    const std::uint64_t word = words.next() ^ flip;
    std::memcpy(out, &word, word_bytes);
  }
  const std::uint64_t tail = words.next() ^ flip;
  std::memcpy(out, &tail, length % word_bytes);
}

bool words_match(const std::byte* data, std::uint64_t length, Pattern pattern, std::uint64_t first_word) {
  Pattern::Words words = pattern.from(first_word);
  std::uint64_t wrong_bits = 0;
  const std::byte* const whole_end = data + length / word_bytes * word_bytes;
  for (; data != whole_end; data += word_bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, word_bytes);
    wrong_bits |= word ^ words.next();
  }
  const std::uint64_t tail = words.next();
  return wrong_bits == 0 && std::memcmp(data, &tail, length % word_bytes) == 0;
}

/// Compares in blocks, and looks for the byte only in a block that differs.
std::optional<Mismatch> first_mismatch(const std::byte* data, std::uint64_t length, Pattern pattern,
                                       std::uint64_t first_word) {
  constexpr std::uint64_t block_bytes = 4096;
  std::array<std::byte, block_bytes> expected;
  for (std::uint64_t done = 0; done < length; done += block_bytes) {
    const std::byte* const block = data + done;
    const std::uint64_t size = std::min(block_bytes, length - done);
    const std::uint64_t block_word = first_word + done / word_bytes;
    if (words_match(block, size, pattern, block_word)) continue;
    write_words(expected.data(), size, pattern, block_word, 0);
    const auto [found, wanted] = std::mismatch(block, block + size, expected.begin());
    return Mismatch{.offset = done + static_cast<std::uint64_t>(found - block),
                    .expected = static_cast<std::uint8_t>(*wanted),
                    .found = static_cast<std::uint8_t>(*found)};
  }
  return std::nullopt;
}

void require_inside(const Buffer& buffer, std::uint64_t offset, std::uint64_t length) {
  if (offset <= buffer.size() && length <= buffer.size() - offset) return;
  throw Error(fmt::format("the range of {} bytes from {} on is not inside a buffer of {} bytes", length,
                          offset, buffer.size()));
}

bool on_gpu(const Buffer& buffer) {
  return buffer.kind() != MemoryKind::host;
}

void write_range(const Buffer& buffer, std::uint64_t offset, std::uint64_t length, std::uint64_t seed,
                 std::uint64_t flip) {
  require_inside(buffer, offset, length);
  const Pattern pattern(seed);
  std::byte* const start = buffer.data() + offset;
  if (!on_gpu(buffer)) return write_words(start, length, pattern, 0, flip);
  std::vector<std::byte> bounce(std::min(length, bounce_bytes));
  for (std::uint64_t done = 0; done < length; done += bounce_bytes) {
    const std::uint64_t size = std::min(bounce_bytes, length - done);
    write_words(bounce.data(), size, pattern, done / word_bytes, flip);
    cuda::copy_and_wait(buffer.gpu(), start + done, bounce.data(), size, cuda::CopyKind::host_to_gpu);
  }
}

}  // namespace

void fill_pattern(const Buffer& buffer, std::uint64_t offset, std::uint64_t length, std::uint64_t seed) {
  write_range(buffer, offset, length, seed, 0);
}

std::byte pattern_byte(std::uint64_t position, std::uint64_t seed) {
  const std::uint64_t word = Pattern(seed).from(position / word_bytes).next();
  return static_cast<std::byte>(word >> (position % word_bytes * 8));
}

// Every bit of the pattern turned over, so that every single byte differs.
void scrub(const Buffer& buffer, std::uint64_t offset, std::uint64_t length, std::uint64_t seed) {
  write_range(buffer, offset, length, seed, ~std::uint64_t{0});
}

std::optional<Mismatch> find_mismatch(const Buffer& buffer, std::uint64_t offset, std::uint64_t length,
                                      std::uint64_t seed) {
  require_inside(buffer, offset, length);
  const Pattern pattern(seed);
  const std::byte* const start = buffer.data() + offset;
  if (!on_gpu(buffer)) return first_mismatch(start, length, pattern, 0);
  cuda::flush_rdma_writes(buffer.gpu());
  std::vector<std::byte> bounce(std::min(length, bounce_bytes));
  for (std::uint64_t done = 0; done < length; done += bounce_bytes) {
    const std::uint64_t size = std::min(bounce_bytes, length - done);
    cuda::copy_and_wait(buffer.gpu(), bounce.data(), start + done, size, cuda::CopyKind::gpu_to_host);
    if (auto mismatch = first_mismatch(bounce.data(), size, pattern, done / word_bytes)) {
      mismatch->offset += done;
      return mismatch;
    }
  }
  return std::nullopt;
}

}  // namespace gdrbench
