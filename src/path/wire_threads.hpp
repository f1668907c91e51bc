#pragma once

#include <sched.h>

#include <algorithm>

#include "gdrbench/case.hpp"

namespace gdrbench::path {

/// Threads that move the sockets of a case at an end that may run on `cores`, beside the one that measures: 0
/// where that one does it. Left to choose, a quarter of the cores at most, for the other end may run here
/// too.
constexpr std::uint32_t wire_threads(const Case& c, std::uint32_t cores) {
  constexpr std::uint32_t most_by_itself = 8;
  constexpr std::uint64_t worth_it = 64 << 10;  // of smaller messages the hand-over is a larger part
  // A message that is timed would wait for the hand-over.
  if (uses_verbs(c.path) || times_messages(c.suite)) return 0;
  if (c.tcp_threads) return std::min(*c.tcp_threads, c.queue_pairs);
  // One socket is as fast without, at half the CPU time.
  if (c.queue_pairs == 1 || c.size_bytes < worth_it) return 0;
  return std::min({c.queue_pairs, most_by_itself, cores / 4});
}

/// On the cores that the calling thread may run on.
inline std::uint32_t wire_threads(const Case& c) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);  // fails on machines of more than 1024 CPUs
  return wire_threads(c, static_cast<std::uint32_t>(CPU_COUNT(&allowed)));
}

}  // namespace gdrbench::path
