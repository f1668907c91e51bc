#include "cuda/flagged_words.hpp"

#include <algorithm>
#include <cstring>

namespace gdrbench::cuda {
namespace {

constexpr std::uint64_t data_bytes_of_pair = 8;

// Atomic, so that the compiler keeps data and flag in one access.
void store(std::uint64_t* word, std::uint32_t data, std::uint32_t flag) {
  __atomic_store_n(word, data | std::uint64_t{flag} << 32, __ATOMIC_RELAXED);
}

}  // namespace

void write_flagged(std::byte* words, const std::byte* data, std::uint64_t length, std::uint32_t flag) {
  auto* word = reinterpret_cast<std::uint64_t*>(words);
  for (std::uint64_t done = 0; done < length; done += data_bytes_of_pair, word += 2) {
    std::uint32_t halves[2] = {};
    std::memcpy(halves, data + done, std::min(data_bytes_of_pair, length - done));
    store(word, halves[0], flag);
    store(word + 1, halves[1], flag);
  }
}

std::uint64_t read_flagged(std::byte* data, const std::byte* words, std::uint64_t length, std::uint32_t flag,
                           std::uint64_t taken) {
  const auto* word = reinterpret_cast<const std::uint64_t*>(words) + taken / sizeof(std::uint32_t);
  for (; taken < length; word += 2) {
    const std::uint64_t first = __atomic_load_n(word, __ATOMIC_RELAXED);
    const std::uint64_t second = __atomic_load_n(word + 1, __ATOMIC_RELAXED);
    if (first >> 32 != flag || second >> 32 != flag) return taken;
    const std::uint64_t both = (first & 0xffffffff) | second << 32;
    const std::uint64_t bytes = std::min(data_bytes_of_pair, length - taken);
    std::memcpy(data + taken, &both, bytes);
    taken += bytes;
  }
  return taken;
}

}  // namespace gdrbench::cuda
