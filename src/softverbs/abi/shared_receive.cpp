#include "abi/verbs.hpp"
#include "nic/context.hpp"
#include "nic/receive_queue.hpp"

namespace gdrbench::softverbs {
namespace {

ibv_srq* create_queue(ibv_pd* pd, const ibv_srq_init_attr& attributes) {
  refuse_if(pd == nullptr);
  refuse_if(attributes.attr.max_wr < 1 || attributes.attr.max_wr > max_work_requests);
  refuse_if(attributes.attr.max_sge > max_sge);
  Context& owner = Context::of(pd->context);
  auto* const queue = create<SharedReceiveQueue>(owner.shared_receive_queues, owner, *pd, attributes);
  ++ProtectionDomain::of(pd).users;
  return queue;
}

}  // namespace

GDRBENCH_VERB ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attributes) {
  return returns_null("ibv_create_srq", [&] { return create_queue(pd, *attributes); });
}

/// For what the inline verb does not send to ibv_create_srq: other types, which are not offered.
ibv_srq* operations::create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attributes) {
  return returns_null("ibv_create_srq", [&] {
    const std::uint32_t offered = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
    const bool typed = (attributes->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0;
    refuse_if((attributes->comp_mask & ~offered) != 0, EOPNOTSUPP);
    refuse_if(typed && attributes->srq_type != IBV_SRQT_BASIC, EOPNOTSUPP);
    refuse_if((attributes->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 || attributes->pd->context != context);
    return create_queue(attributes->pd, {attributes->srq_context, attributes->attr});
  });
}

GDRBENCH_VERB int ibv_modify_srq(ibv_srq* queue, ibv_srq_attr* attributes, int mask) {
  return returns_errno("ibv_modify_srq",
                       [&] { return SharedReceiveQueue::of(queue).modify(*attributes, mask); });
}

GDRBENCH_VERB int ibv_query_srq(ibv_srq* queue, ibv_srq_attr* attributes) {
  return returns_errno("ibv_query_srq", [&] {
    SharedReceiveQueue::of(queue).query(*attributes);
    return 0;
  });
}

GDRBENCH_VERB int ibv_destroy_srq(ibv_srq* queue) {
  return returns_errno("ibv_destroy_srq", [&] {
    SharedReceiveQueue& ours = SharedReceiveQueue::of(queue);
    if (ours.users != 0) return EBUSY;
    Context& owner = Context::of(queue->context);
    ProtectionDomain& domain = ProtectionDomain::of(queue->pd);
    destroy(owner.shared_receive_queues, &ours);
    --domain.users;
    return 0;
  });
}

int operations::post_srq_recv(ibv_srq* queue, ibv_recv_wr* list, ibv_recv_wr** bad) {
  if (const int error = injected("ibv_post_srq_recv")) {
    *bad = list;
    return error;
  }
  return SharedReceiveQueue::of(queue).post(list, bad);
}

}  // namespace gdrbench::softverbs
