#include "abi/verbs.hpp"
#include "nic/completion_queue.hpp"

namespace gdrbench::softverbs {

GDRBENCH_VERB int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** queue, void** user) {
  return returns_minus_one("ibv_get_cq_event", [&] {
    if (const int error = CompletionChannel::of(channel).events().take(*queue)) return error;
    *user = (*queue)->cq_context;
    return 0;
  });
}

GDRBENCH_VERB void ibv_ack_cq_events(ibv_cq* queue, unsigned count) {
  if (queue->channel != nullptr) CompletionChannel::of(queue->channel).events().acknowledge(queue, count);
}

GDRBENCH_VERB int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  return returns_minus_one("ibv_get_async_event", [&] { return Context::of(context).events().take(*event); });
}

GDRBENCH_VERB void ibv_ack_async_event(ibv_async_event* event) {
  const auto acknowledge = [](auto* owner) { Context::of(owner->context).events().acknowledge(owner, 1); };
  switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
      return acknowledge(event->element.cq);
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return acknowledge(event->element.qp);
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return acknowledge(event->element.srq);
    default:
      return;  // an event of the port or the device: nobody waits for its acknowledgement
  }
}

}  // namespace gdrbench::softverbs
