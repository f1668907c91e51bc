#pragma once

#include <algorithm>
#include <cstdint>

#include "gdrbench/case.hpp"

/// How the payload of a case lies in memory, the same on both ends: message i of queue pair l uses slot i mod
/// slots of that queue pair, at the sender and at the receiver.
namespace gdrbench::path {

/// What one end does in a case. "Posts": it starts transfers; "accepts": it is their target.
struct Flow {
  bool posts = false;
  bool accepts = false;
};

constexpr Flow flow_of(const Case& c, bool initiator) {
  const bool ping_pong = times_messages(c.suite) && c.op != Op::read;
  const bool forward = times_messages(c.suite) || c.direction != Direction::reverse;
  const bool reverse = ping_pong || (!times_messages(c.suite) && c.direction != Direction::forward);
  return initiator ? Flow{.posts = forward, .accepts = reverse} : Flow{.posts = reverse, .accepts = forward};
}

/// Whether payload leaves from, or arrives in, this end's memory. A read moves it towards the end that posts.
constexpr bool needs_outgoing(const Case& c, Flow flow) {
  return c.op == Op::read ? flow.accepts : flow.posts;
}
constexpr bool needs_incoming(const Case& c, Flow flow) {
  return c.op == Op::read ? flow.posts : flow.accepts;
}

struct Layout {
  std::uint64_t size = 0;    ///< bytes of one message
  std::uint64_t stride = 0;  ///< bytes from slot to slot
  std::uint64_t slots = 1;   ///< of each queue pair
  std::uint32_t queue_pairs = 1;

  std::uint64_t offset(std::uint32_t queue_pair, std::uint64_t message) const {
    return (queue_pair * slots + message % slots) * stride;
  }
  std::uint64_t bytes() const { return queue_pairs * slots * stride; }
};

/// A ping-pong reuses one slot; bandwidth and overlap rotate through the footprint.
inline Layout layout_of(const Case& c) {
  constexpr std::uint64_t line = 64;         // no two messages share a cache line
  constexpr std::uint64_t max_slots = 4096;  // small messages: enough to defeat the L1 and L2 caches
  Layout layout{.size = c.size_bytes,
                .stride = (c.size_bytes + line - 1) / line * line,
                .slots = 1,
                .queue_pairs = c.queue_pairs};
  if (!times_messages(c.suite)) {
    const std::uint64_t wanted = c.footprint_bytes / (layout.stride * layout.queue_pairs);
    layout.slots = std::clamp<std::uint64_t>(wanted, 1, max_slots);
  }
  return layout;
}

/// Requests that a queue has to hold: of a ping-pong more than the one message that is in flight.
constexpr std::uint32_t queue_depth(const Case& c) {
  constexpr std::uint32_t ping_pong_depth = 16;
  return times_messages(c.suite) ? std::max(c.depth, ping_pong_depth) : c.depth;
}

/// A plain write raises no completion at its target: where each message is timed by completions, that of a
/// direct path is found by polling its last byte.
constexpr bool polls_for_writes(const Case& c) {
  return times_messages(c.suite) && spec(c.suite).arrival == ArrivalBy::completion;
}

/// Bytes at the end of a message that are no pattern once it has arrived: where it is a kernel or the CPU
/// that sees the last byte arrive, it turns that byte over for the next message.
constexpr std::uint64_t turned_bytes(const Case& c) {
  return spec(c.suite).arrival == ArrivalBy::memory ? 1 : 0;
}

/// Messages of `total` that go over a queue pair: they are dealt out in turn.
constexpr std::uint64_t share_of(std::uint64_t total, std::uint32_t queue_pair, std::uint32_t queue_pairs) {
  return total / queue_pairs + (queue_pair < total % queue_pairs ? 1 : 0);
}

}  // namespace gdrbench::path
