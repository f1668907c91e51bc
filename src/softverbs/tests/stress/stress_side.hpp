#pragma once

#include <chrono>
#include <string>

#include "stress_stream.hpp"

/// One side of all pairs: a device context of its own, and the threads that poll it.
namespace gdrbench::softverbs {

struct Settings {
  std::string device;  ///< empty: see open_device
  std::uint32_t pairs = 24, pollers = 1;
  std::uint64_t seed = 1;
  std::chrono::seconds duration{120};
};

/// What both sides see, in memory that a fork shares.
struct Shared {
  static constexpr std::uint32_t max_pairs = 256;

  std::atomic<bool> failed{false};
  Totals totals;
  std::array<std::array<Gate, 2>, max_pairs> gates{};  ///< by pair and direction
};

/// Runs side 0 (left) or 1 (right) to its end over a stream socket to the other side, which it closes. A
/// fault is written to stderr, ends both sides, and is told by false.
bool run_side(std::uint32_t side, const Settings& settings, Shared& shared, int socket) noexcept;

}  // namespace gdrbench::softverbs
