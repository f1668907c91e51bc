#include "abi/completion.hpp"
#include "abi/guard.hpp"
#include "abi/operations.hpp"

namespace gdrbench::softverbs {
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
Value read(ibv_cq_ex* queue) {
  return static_cast<Value>(of(queue).current().*field);
}

void install_polling(ibv_cq_ex& queue) {
  queue.start_poll = start_poll;
  queue.next_poll = [](ibv_cq_ex* current) { return show_current(current, of(current).next_poll()); };
  queue.end_poll = [](ibv_cq_ex* current) { of(current).end_poll(); };
  queue.read_opcode = read<&ibv_wc::opcode, ibv_wc_opcode>;
  queue.read_vendor_err = read<&ibv_wc::vendor_err, std::uint32_t>;
  queue.read_byte_len = read<&ibv_wc::byte_len, std::uint32_t>;
  queue.read_imm_data = read<&ibv_wc::imm_data, __be32>;
  queue.read_qp_num = read<&ibv_wc::qp_num, std::uint32_t>;
  queue.read_src_qp = read<&ibv_wc::src_qp, std::uint32_t>;
  queue.read_wc_flags = read<&ibv_wc::wc_flags, unsigned>;
  queue.read_slid = read<&ibv_wc::slid, std::uint32_t>;
  queue.read_sl = read<&ibv_wc::sl, std::uint8_t>;
  queue.read_dlid_path_bits = read<&ibv_wc::dlid_path_bits, std::uint8_t>;
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
