#include "measure/slot_use.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gdrbench::measure {
namespace {

/// Of a ping-pong the warm-up is the first part; of bandwidth a round of its own, that begins at slot 0 too.
struct Rounds {
  std::uint64_t warmup = 0;
  std::uint64_t measured = 0;
};
Rounds rounds_of(const Case& c, const path::Layout& layout, const RunRequest& request,
                 std::uint32_t queue_pair) {
  if (times_messages(c.suite)) return {.measured = request.warmup + request.iterations};
  return {.warmup = path::share_of(request.warmup, queue_pair, layout.queue_pairs),
          .measured = path::share_of(request.iterations, queue_pair, layout.queue_pairs)};
}

/// Number of the last of `messages` that use the slot; from 1.
std::uint64_t last_in_slot(std::uint64_t messages, std::uint64_t slots, std::uint64_t slot) {
  return (messages - 1 - slot) / slots * slots + slot + 1;
}

}  // namespace

std::uint64_t used_slots(const Case& c, const path::Layout& layout, const RunRequest& request,
                         std::uint32_t queue_pair) {
  const Rounds rounds = rounds_of(c, layout, request, queue_pair);
  return std::min(layout.slots, std::max(rounds.warmup, rounds.measured));
}

std::string message_in_slot(const Case& c, const path::Layout& layout, const RunRequest& request,
                            std::uint32_t queue_pair, std::uint64_t slot) {
  const Rounds rounds = rounds_of(c, layout, request, queue_pair);
  const bool warmup = slot >= rounds.measured;
  const std::uint64_t messages = warmup ? rounds.warmup : rounds.measured;
  return fmt::format("{}message {} of {}{}", warmup ? "warm-up " : "",
                     last_in_slot(messages, layout.slots, slot), messages,
                     layout.queue_pairs > 1 ? fmt::format(" on queue pair {}", queue_pair) : "");
}

}  // namespace gdrbench::measure
