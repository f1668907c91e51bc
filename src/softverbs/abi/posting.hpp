#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "nic/queue_pair.hpp"

/// What both ways of posting share: ibv_post_send, and ibv_wr_start … ibv_wr_complete. Functions return 0 or
/// an errno value and are called under the lock of the queue pair.
namespace gdrbench::softverbs::posting {

/// Whether the state takes send requests; in an error state they are flushed at once.
inline bool accepts_sends(const QueuePair& queue_pair) {
  const ibv_qp_state state = queue_pair.qp_base.state;
  return queue_pair.may_send() || state == IBV_QPS_ERR || state == IBV_QPS_SQE;
}
bool opcode_allowed(ibv_qp_type type, ibv_wr_opcode opcode);
int set_segments(const QueuePair& queue_pair, SendWork& work, const ibv_sge* list, std::size_t count);
/// Copies data behind what the request has already.
int add_inline(const QueuePair& queue_pair, SendWork& work, const void* data, std::size_t bytes);
int set_destination(SendWork& work, ibv_ah* handle, std::uint32_t qpn, std::uint32_t qkey);
/// Posts what was staged, and sends what can be sent.
int post_staged(QueuePair& queue_pair);

}  // namespace gdrbench::softverbs::posting
