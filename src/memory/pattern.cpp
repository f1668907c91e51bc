#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "cuda/device.hpp"
#include "cuda/pattern_words.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/memory.hpp"
#include "memory/buffer_backing.hpp"

namespace gdrbench {
namespace {

constexpr std::uint64_t word_bytes = 8;
using cuda::PatternWords;

/// Writes the words, each xor `flip`; the last one is cut where the range ends.
void write_words(std::byte* out, std::uint64_t length, PatternWords words, std::uint64_t flip) {
  std::byte* const whole_end = out + length / word_bytes * word_bytes;
  for (; out != whole_end; out += word_bytes) {
    const std::uint64_t word = words.next() ^ flip;
    std::memcpy(out, &word, word_bytes);
  }
  const std::uint64_t tail = words.next() ^ flip;
  std::memcpy(out, &tail, length % word_bytes);
}

bool words_match(const std::byte* data, std::uint64_t length, PatternWords words) {
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

/// Compares in blocks, and looks for the byte only in a block that differs. The slot is not filled in.
std::optional<Mismatch> first_mismatch(const std::byte* data, std::uint64_t length, std::uint64_t seed) {
  constexpr std::uint64_t block_bytes = 4096;
  std::array<std::byte, block_bytes> expected;
  for (std::uint64_t done = 0; done < length; done += block_bytes) {
    const std::byte* const block = data + done;
    const std::uint64_t size = std::min(block_bytes, length - done);
    const PatternWords words(seed, done / word_bytes);
    if (words_match(block, size, words)) continue;
    write_words(expected.data(), size, words, 0);
    const auto [found, wanted] = std::mismatch(block, block + size, expected.begin());
    return Mismatch{.offset = done + static_cast<std::uint64_t>(found - block),
                    .expected = static_cast<std::uint8_t>(*wanted),
                    .found = static_cast<std::uint8_t>(*found)};
  }
  return std::nullopt;
}

/// The byte in a word that the GPU found to be wrong.
Mismatch mismatch_in(const cuda::WrongWord& wrong, const PatternSlots& slots) {
  const std::uint64_t expected = PatternWords(slots.seed + wrong.range, wrong.offset / word_bytes).peek(0);
  const std::uint64_t bytes = std::min(word_bytes, slots.length - wrong.offset);
  const auto byte_of = [](std::uint64_t word, std::uint64_t i) {
    return static_cast<std::uint8_t>(word >> i * 8);
  };
  std::uint64_t i = 0;
  while (i + 1 < bytes && byte_of(wrong.found, i) == byte_of(expected, i)) ++i;
  return {.slot = wrong.range,
          .offset = wrong.offset + i,
          .expected = byte_of(expected, i),
          .found = byte_of(wrong.found, i)};
}

void require_inside(const Buffer& buffer, const PatternSlots& slots) {
  if (slots.count == 0) return;
  std::uint64_t end = 0;
  const bool overflows = __builtin_mul_overflow(slots.stride, slots.count - 1, &end) ||
                         __builtin_add_overflow(end, slots.offset, &end) ||
                         __builtin_add_overflow(end, slots.length, &end);
  if (!overflows && end <= buffer.size()) return;
  throw Error(fmt::format("{} ranges of {} bytes, {} apart from {} on, are not inside a buffer of {} bytes",
                          slots.count, slots.length, slots.stride, slots.offset, buffer.size()));
}

bool on_gpu(const Buffer& buffer) {
  return buffer.kind() != MemoryKind::host;
}

cuda::PatternRanges gpu_ranges(const Buffer& buffer, const PatternSlots& slots) {
  return {.start = buffer.data() + slots.offset,
          .length = slots.length,
          .stride = slots.stride,
          .count = slots.count,
          .seed = slots.seed};
}

void write_slots(const Buffer& buffer, const PatternSlots& slots, std::uint64_t flip) {
  require_inside(buffer, slots);
  if (on_gpu(buffer)) return BufferKernels::of(buffer).write(gpu_ranges(buffer, slots), flip);
  for (std::uint64_t i = 0; i < slots.count; ++i)
    write_words(buffer.data() + slots.offset + i * slots.stride, slots.length,
                PatternWords(slots.seed + i, 0), flip);
}

}  // namespace

void fill_pattern(const Buffer& buffer, const PatternSlots& slots) {
  write_slots(buffer, slots, 0);
}

std::byte pattern_byte(std::uint64_t position, std::uint64_t seed) {
  const std::uint64_t word = PatternWords(seed, position / word_bytes).next();
  return static_cast<std::byte>(word >> (position % word_bytes * 8));
}

// Every bit of the pattern turned over, so that every single byte differs.
void scrub(const Buffer& buffer, const PatternSlots& slots) {
  write_slots(buffer, slots, ~std::uint64_t{0});
}

std::optional<Mismatch> find_mismatch(const Buffer& buffer, const PatternSlots& slots) {
  require_inside(buffer, slots);
  if (on_gpu(buffer)) {
    cuda::flush_rdma_writes(buffer.gpu());
    const auto wrong = BufferKernels::of(buffer).first_wrong(gpu_ranges(buffer, slots));
    return wrong ? std::optional(mismatch_in(*wrong, slots)) : std::nullopt;
  }
  for (std::uint64_t i = 0; i < slots.count; ++i) {
    auto mismatch =
        first_mismatch(buffer.data() + slots.offset + i * slots.stride, slots.length, slots.seed + i);
    if (!mismatch) continue;
    mismatch->slot = i;
    return mismatch;
  }
  return std::nullopt;
}

}  // namespace gdrbench
