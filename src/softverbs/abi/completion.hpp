#pragma once

#include <cstdint>

#include "nic/completion_queue.hpp"

namespace gdrbench::softverbs {

struct CompletionQueueRequest {
  std::int64_t entries = 0;
  void* user = nullptr;
  ibv_comp_channel* channel = nullptr;
  std::uint32_t vector = 0;
};

/// Throws Refused: EINVAL for what is out of range or a channel of another context, ENOMEM.
CompletionQueue& create_completion_queue(ibv_context* context, const CompletionQueueRequest& request);

}  // namespace gdrbench::softverbs
