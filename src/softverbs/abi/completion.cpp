#include "abi/completion.hpp"

#include "abi/guard.hpp"
#include "abi/operations.hpp"
#include "abi/visible.hpp"

namespace gdrbench::softverbs {
namespace {

/// refcnt is a plain int of the public struct.
std::atomic_ref<int> users_of(ibv_comp_channel& channel) {
  return std::atomic_ref<int>(channel.refcnt);
}

}  // namespace

GDRBENCH_VERB ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  return returns_null("ibv_create_comp_channel", [&]() -> ibv_comp_channel* {
    return create<CompletionChannel>(Context::of(context).channels, *context);
  });
}

GDRBENCH_VERB int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  return returns_errno("ibv_destroy_comp_channel", [&] {
    if (users_of(*channel) != 0) return EBUSY;
    destroy(Context::of(channel->context).channels, &CompletionChannel::of(channel));
    return 0;
  });
}

CompletionQueue& create_completion_queue(ibv_context* context, const CompletionQueueRequest& request) {
  refuse_if(request.entries < 1 || request.entries > max_completions);
  refuse_if(request.vector >= static_cast<std::uint32_t>(context->num_comp_vectors));
  refuse_if(request.channel != nullptr && request.channel->context != context);
  Context& owner = Context::of(context);
  auto* const channel = request.channel == nullptr ? nullptr : &CompletionChannel::of(request.channel);
  auto* const queue = create<CompletionQueue>(owner.completion_queues, owner,
                                              static_cast<int>(request.entries), channel, request.user);
  if (channel != nullptr) ++users_of(*channel);
  return *queue;
}

GDRBENCH_VERB ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* user, ibv_comp_channel* channel,
                                    int vector) {
  return returns_null("ibv_create_cq", [&] {
    return create_completion_queue(context, {.entries = entries,
                                             .user = user,
                                             .channel = channel,
                                             .vector = static_cast<std::uint32_t>(vector)})
        .abi();
  });
}

GDRBENCH_VERB int ibv_resize_cq(ibv_cq* queue, int entries) {
  return returns_errno("ibv_resize_cq", [&] { return CompletionQueue::of(queue).resize(entries); });
}

GDRBENCH_VERB int ibv_destroy_cq(ibv_cq* queue) {
  return returns_errno("ibv_destroy_cq", [&] {
    CompletionQueue& ours = CompletionQueue::of(queue);
    if (ours.users != 0) return EBUSY;
    Context& owner = Context::of(queue->context);
    ibv_comp_channel* const channel = queue->channel;
    destroy(owner.completion_queues, &ours);
    if (channel != nullptr) --users_of(*channel);
    return 0;
  });
}

/// A negative number when a failure is injected; it is the errno value.
int operations::poll_cq(ibv_cq* queue, int count, ibv_wc* entries) {
  if (const int error = injected("ibv_poll_cq")) return -error;
  return CompletionQueue::of(queue).poll(count, entries);
}

int operations::req_notify_cq(ibv_cq* queue, int solicited_only) {
  if (const int error = injected("ibv_req_notify_cq")) return error;
  CompletionQueue::of(queue).request_notification(solicited_only != 0);
  return 0;
}

}  // namespace gdrbench::softverbs
