#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define GDRBENCH_HOST_DEVICE __host__ __device__
#else
#define GDRBENCH_HOST_DEVICE
#endif

namespace gdrbench::cuda {

/// The test pattern's words, the same to the CPU and to the GPU. Multipliers and increment are those of
/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014); one
/// multiplication a word keeps up with memory. Both steps are bijections: words of one seed all differ, and
/// so do those of two seeds at the same position.
class PatternWords {
 public:
  /// Word number `word` of the pattern of `seed`, and those after it.
  GDRBENCH_HOST_DEVICE constexpr PatternWords(std::uint64_t seed, std::uint64_t word)
      : state_(scramble(seed + increment) * 0x94d049bb133111ebU + word * increment) {}

  /// The word `ahead` words after the next one.
  GDRBENCH_HOST_DEVICE constexpr std::uint64_t peek(std::uint64_t ahead) const {
    return scramble(state_ + ahead * increment);
  }
  GDRBENCH_HOST_DEVICE constexpr std::uint64_t next() {
    const std::uint64_t word = scramble(state_);
    state_ += increment;
    return word;
  }

 private:
  static constexpr std::uint64_t increment = 0x9e3779b97f4a7c15U;
  GDRBENCH_HOST_DEVICE static constexpr std::uint64_t scramble(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    return x ^ (x >> 31);
  }
  std::uint64_t state_;
};

}  // namespace gdrbench::cuda
