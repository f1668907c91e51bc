#pragma once

#include <algorithm>
#include <cstdint>

#include "base/case_fields.hpp"
#include "gdrbench/case.hpp"
#include "memory/copier.hpp"
#include "memory/staging_choice.hpp"
#include "path/layout.hpp"

/// The staging buffer of one queue pair of a staged path, and the small messages that steer it.
namespace gdrbench::path {

/// Precedes the payload of a `send`, and is all of a control message.
struct ChunkHeader {
  enum class Kind : std::uint32_t { data = 1, credit, token, request, ready };
  Kind kind = Kind::data;
  std::uint32_t value = 0;  ///< chunks freed so far (data, credit), messages asked for or chunks ready so far
};
static_assert(sizeof(ChunkHeader) == 8);

/// What a plain write leaves at the target after its payload, since it raises no completion there.
struct Arrival {
  std::uint32_t chunks = 0;  ///< written so far
  std::uint32_t freed = 0;   ///< as in ChunkHeader
};
static_assert(sizeof(Arrival) == 8);

/// Offsets in the staging buffer of a queue pair, equal on both ends.
struct StagingLayout {
  static constexpr std::uint64_t line = 64;  ///< a header ends where the payload's first line begins

  std::uint64_t chunk_bytes = 0;  ///< payload of a full chunk
  std::uint64_t chunks_per_message = 1;
  std::uint32_t outgoing_slots = 1;  ///< chunks being copied or sent
  std::uint32_t incoming_slots = 1;  ///< chunks that may be under way to us
  std::uint32_t control_slots = 8;   ///< control messages that may be under way, each direction
  bool receives_data = true;         ///< send: chunks arrive in posted receives, as control messages do

  std::uint64_t stride() const { return line + (chunk_bytes + line - 1) / line * line; }
  std::uint64_t receives() const { return incoming_slots + control_slots; }

  std::uint64_t outgoing(std::uint64_t chunk) const { return chunk % outgoing_slots * stride() + line; }
  std::uint64_t incoming(std::uint64_t slot) const { return (outgoing_slots + slot) * stride() + line; }
  /// Where a posted receive puts what follows its header.
  std::uint64_t receive(std::uint64_t slot) const {
    return receives_data ? incoming(slot) : incoming(incoming_slots) + slot * line;
  }
  std::uint64_t control(std::uint64_t index) const {
    return receive(receives()) + index % control_slots * line;
  }
  std::uint64_t arrival() const {
    return receive(receives()) + control_slots * line;
  }  ///< written by the remote end
  std::uint64_t arrival_source(std::uint64_t chunk) const {
    return arrival() + line + chunk % outgoing_slots * sizeof(Arrival);
  }
  std::uint64_t bytes() const {
    return (arrival_source(0) + outgoing_slots * sizeof(Arrival) + line - 1) / line * line;
  }
};

inline StagingLayout staging_layout(const Case& c) {
  constexpr std::uint64_t total_bytes = 64 << 20;  // over all queue pairs
  StagingLayout layout;
  const bool pipelined = is_pipelined(c.staging.variant);
  const bool by_sockets = pipelined && !uses_verbs(c.path);
  // Of each direction: enough chunks to cover copy and wire. Sockets hold what is under way themselves. Where
  // the CPU copies as well as sends, it had better find the bytes in its second-level cache; a GPU's copies
  // do not put them there.
  const bool by_cpu_alone = by_sockets && c.memory == MemoryKind::host;
  const std::uint64_t queue_pair_bytes = by_cpu_alone ? 1 << 20 : by_sockets ? 4 << 20 : 16 << 20;
  const std::uint64_t least = !pipelined ? 1 : by_sockets && !by_cpu_alone ? 2 : 4;
  layout.chunk_bytes = std::min({c.size_bytes, pipelined ? c.staging.chunk_bytes : max_chunk_bytes,
                                 max_chunk_bytes, memory::max_bytes(c.staging.engine)});
  layout.chunks_per_message = (c.size_bytes + layout.chunk_bytes - 1) / layout.chunk_bytes;
  const std::uint64_t fit = std::min(std::max(queue_pair_bytes / layout.chunk_bytes, least),
                                     total_bytes / c.queue_pairs / layout.stride());
  const auto slots =
      c.staging.slots != 0
          ? c.staging.slots
          : static_cast<std::uint32_t>(std::clamp<std::uint64_t>(fit, 1, std::max(queue_depth(c), 16U)));
  layout.incoming_slots = pipelined ? std::max(slots, 2U) : slots;
  layout.outgoing_slots =
      pipelined ? layout.incoming_slots : 1;  // plain: copy, send, and only then copy again
  layout.receives_data = c.op == Op::send;
  if (c.op == Op::read) layout.control_slots += queue_depth(c) + layout.outgoing_slots;
  return layout;
}

/// What the copies of a case are for, at the end whose GPU it names.
inline memory::StagingUse staging_use(const Case& c) {
  return {.payload = c.memory,
          .gpu = c.gpu,
          .shares_gpu = c.shares_gpu,
          .queue_pairs = c.queue_pairs,
          .cpu_sends = !uses_verbs(c.path),
          .is_latency_critical = times_messages(c.suite),
          .message_bytes = c.size_bytes};
}

}  // namespace gdrbench::path
