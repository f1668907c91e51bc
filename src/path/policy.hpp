#pragma once

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "base/fields.hpp"
#include "gdrbench/case.hpp"
#include "wire/queue_pair.hpp"

/// What both policies, Direct and Staged, share.
namespace gdrbench::path {

/// One round of traffic: how many messages this end posts and accepts over all queue pairs, and how many
/// tokens (zero-payload marks that start and end a round) come before and after the messages.
struct Round {
  std::uint64_t posts = 0;
  std::uint64_t accepts = 0;
  bool token_before = false;
  bool token_after = false;
};

/// Tells a slow wire from a dead one: whether bytes have moved since the last look, where the wire can say,
/// though no message is complete yet.
template <class W>
class ProgressDetector {
 public:
  bool moved(const W& wire) {
    if constexpr (requires { wire.bytes_moved(); }) {
      const std::uint64_t before = std::exchange(seen_, wire.bytes_moved());
      return seen_ != before;
    }
    return false;
  }

 private:
  std::uint64_t seen_ = 0;
};

/// The memory that the other end offers under `key`. Throws UsageError that names the field, also where it is
/// less than `needed_bytes`.
inline wire::RemoteRegion offered_region(const Fields& offer, const char* key, std::uint64_t needed_bytes) {
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  const Fields region = offer.inner(key);
  return {.address = region.number("address", 0, most),
          .length = region.number("length", needed_bytes, most),
          .rkey = region.number_as<std::uint32_t>("rkey", 0, std::numeric_limits<std::uint32_t>::max())};
}

/// Threads that move the sockets of a case at an end that may run on `cores`, beside the one that measures: 0
/// where that one does it. Left to choose, a quarter of the cores at most, for the other end may run here
/// too.
constexpr std::uint32_t wire_threads(const Case& c, std::uint32_t cores) {
  constexpr std::uint32_t max_by_itself = 8;
  constexpr std::uint64_t worth_it = 64 << 10;  // of smaller messages the hand-over is a larger part
  // A message that is timed would wait for the hand-over.
  if (uses_verbs(c.path) || times_messages(c.suite)) return 0;
  if (c.tcp_threads) return std::min(*c.tcp_threads, c.queue_pairs);
  // One socket is as fast without, at half the CPU time.
  if (c.queue_pairs == 1 || c.size_bytes < worth_it) return 0;
  return std::min({c.queue_pairs, max_by_itself, cores / 4});
}

/// On the cores that the calling thread may run on.
inline std::uint32_t wire_threads(const Case& c) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);  // fails on machines of more than 1024 CPUs
  return wire_threads(c, static_cast<std::uint32_t>(CPU_COUNT(&allowed)));
}

}  // namespace gdrbench::path
