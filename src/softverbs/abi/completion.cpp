// Completion queues and channels: plain and extended.
#include <cstdint>

#include "abi/verbs.hpp"
#include "nic/completion_queue.hpp"

namespace gdrbench::softverbs {
namespace {

struct CompletionQueueRequest {
  std::int64_t entries = 0;
  void* user = nullptr;
  ibv_comp_channel* channel = nullptr;
  std::uint32_t vector = 0;
};

/// refcnt is a plain int of the public struct.
std::atomic_ref<int> users_of(ibv_comp_channel& channel) {
  return std::atomic_ref<int>(channel.refcnt);
}

/// Throws Refused: EINVAL for what is out of range or a channel of another context, ENOMEM.
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

namespace {

CompletionQueue& of(ibv_cq_ex* queue) {
  return *static_cast<CompletionQueue*>(queue);
}

/// What extended polling shows of an entry without a call.
int show_current(ibv_cq_ex* queue, int error) {
  if (error != 0) return error;
  queue->wr_id = of(queue).current().wr_id;
  queue->status = of(queue).current().status;
  return 0;
}

int start_poll(ibv_cq_ex* queue, ibv_poll_cq_attr* attributes) {
  if (attributes != nullptr && attributes->comp_mask != 0) return EINVAL;
  if (const int error = injected("ibv_poll_cq")) return error;
  return show_current(queue, of(queue).start_poll());
}

/// A reader of one field of the current entry.
template <auto field, class Value>
Value read_field(ibv_cq_ex* queue) {
  return static_cast<Value>(of(queue).current().*field);
}

void install_polling(ibv_cq_ex& queue) {
  queue.start_poll = start_poll;
  queue.next_poll = [](ibv_cq_ex* current) { return show_current(current, of(current).next_poll()); };
  queue.end_poll = [](ibv_cq_ex* current) { of(current).end_poll(); };
  queue.read_opcode = read_field<&ibv_wc::opcode, ibv_wc_opcode>;
  queue.read_vendor_err = read_field<&ibv_wc::vendor_err, std::uint32_t>;
  queue.read_byte_len = read_field<&ibv_wc::byte_len, std::uint32_t>;
  queue.read_imm_data = read_field<&ibv_wc::imm_data, __be32>;
  queue.read_qp_num = read_field<&ibv_wc::qp_num, std::uint32_t>;
  queue.read_src_qp = read_field<&ibv_wc::src_qp, std::uint32_t>;
  queue.read_wc_flags = read_field<&ibv_wc::wc_flags, unsigned>;
  queue.read_slid = read_field<&ibv_wc::slid, std::uint32_t>;
  queue.read_sl = read_field<&ibv_wc::sl, std::uint8_t>;
  queue.read_dlid_path_bits = read_field<&ibv_wc::dlid_path_bits, std::uint8_t>;
}

}  // namespace

ibv_cq_ex* operations::create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attributes) {
  return returns_null("ibv_create_cq", [&]() -> ibv_cq_ex* {
    // Timestamps, VLANs, flow tags and the like are not offered, nor a queue that may overrun.
    refuse_if((attributes->wc_flags & ~std::uint64_t{IBV_WC_STANDARD_FLAGS}) != 0, EOPNOTSUPP);
    refuse_if((attributes->comp_mask & ~std::uint32_t{IBV_CQ_INIT_ATTR_MASK_FLAGS}) != 0, EOPNOTSUPP);
    const bool has_flags = (attributes->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0;
    refuse_if(has_flags && (attributes->flags & ~std::uint32_t{IBV_CREATE_CQ_ATTR_SINGLE_THREADED}) != 0,
              EOPNOTSUPP);
    CompletionQueue& queue = create_completion_queue(context, {.entries = attributes->cqe,
                                                               .user = attributes->cq_context,
                                                               .channel = attributes->channel,
                                                               .vector = attributes->comp_vector});
    install_polling(queue);
    return &queue;
  });
}

}  // namespace gdrbench::softverbs
