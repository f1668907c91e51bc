#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gdrbench/memory.hpp"
#include "gdrbench/run_result.hpp"
#include "path/layout.hpp"

/// The payload of a case: its memory, and which messages of a run use which part of it.
namespace gdrbench::measure {

/// The payload memory of one end, shared by the cases of a session that are open at the same time (they run
/// one after another), so that an end holds one footprint and not one for every path.
struct Payload {
  std::shared_ptr<Buffer> outgoing;
  std::shared_ptr<Buffer> incoming;
};

/// Makes payload buffers that the case needs at this end, or keeps those that fit.
void provide_payload(const Case& c, path::Flow flow, Payload& payload);

/// Bytes of payload memory that one end allocates for the case (outgoing plus incoming); for limits.
std::uint64_t payload_bytes(const Case& c);

/// Bytes of bounce memory that one end allocates for the case beside its payload; 0 for direct paths.
std::uint64_t bounce_bytes(const Case& c);

/// How many slots of the queue pair messages of this run use: those from 0 on.
std::uint64_t used_slots(const Case& c, const path::Layout& layout, const RunRequest& request,
                         std::uint32_t queue_pair);

/// The message whose bytes a used slot holds when the run is over, the last one that used it: "message 7 of
/// 20", counted from 1 in its queue pair, or "warm-up message 3 of 4"; with the queue pair where there are
/// several.
std::string message_in_slot(const Case& c, const path::Layout& layout, const RunRequest& request,
                            std::uint32_t queue_pair, std::uint64_t slot);

}  // namespace gdrbench::measure
