#pragma once

#include <cstdint>
#include <string>

#include "gdrbench/run_result.hpp"
#include "path/layout.hpp"

/// Which messages of a run use which slot of the payload.
namespace gdrbench::measure {

/// How many slots of the queue pair messages of this run use: those from 0 on.
std::uint64_t used_slots(const Case& c, const path::Layout& layout, const RunRequest& request,
                         std::uint32_t queue_pair);

/// The message whose bytes a used slot holds when the run is over, the last one that used it: "message 7 of
/// 20", counted from 1 in its queue pair, or "warm-up message 3 of 4"; with the queue pair where there are
/// several.
std::string message_in_slot(const Case& c, const path::Layout& layout, const RunRequest& request,
                            std::uint32_t queue_pair, std::uint64_t slot);

}  // namespace gdrbench::measure
