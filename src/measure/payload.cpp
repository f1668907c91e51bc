#include "measure/payload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "gdrbench/error.hpp"
#include "path/layout.hpp"
#include "path/staging_layout.hpp"

namespace gdrbench::measure {

namespace {

void grow(std::shared_ptr<Buffer>& buffer, const BufferOptions& wanted) {
  const bool fits = buffer && buffer->kind() == wanted.kind && buffer->gpu() == wanted.gpu &&
                    buffer->size() >= wanted.length;
  if (!fits) {
    buffer
        .reset();  // an open case may still hold it; otherwise its memory is free again before more is taken
    try {
      buffer = std::make_shared<Buffer>(wanted);
    } catch (const SystemError& error) {
      // Too large for this machine, as for the other end's limits: the case cannot be had, others can.
      if (error.code() == ENOMEM) throw Unavailable(error.what());
      throw;
    }
  }
}

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

std::uint64_t payload_bytes(const Case& c) {
  std::uint64_t sides = 0;
  for (const bool initiator : {true, false}) {
    const path::Flow flow = path::flow_of(c, initiator);
    const std::uint64_t mine =
        (path::needs_outgoing(c, flow) ? 1 : 0) + (path::needs_incoming(c, flow) ? 1 : 0);
    sides = std::max(sides, mine);
  }
  return sides * path::layout_of(c).bytes();
}

std::uint64_t bounce_bytes(const Case& c) {
  return is_staged(c.path) ? path::staging_layout(c).bytes() * c.queue_pairs : 0;
}

void provide_payload(const Case& c, path::Flow flow, Payload& payload) {
  const BufferOptions wanted{.kind = is_baseline(c.path) ? MemoryKind::host : c.memory,
                             .length = path::layout_of(c).bytes(),
                             .gpu = c.gpu};
  if (path::needs_outgoing(c, flow)) grow(payload.outgoing, wanted);
  if (path::needs_incoming(c, flow)) grow(payload.incoming, wanted);
}

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
