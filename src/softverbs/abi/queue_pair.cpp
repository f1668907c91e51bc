// Verbs of queue pairs.
#include "nic/queue_pair.hpp"

#include <algorithm>
#include <cerrno>

#include "abi/verbs.hpp"
#include "nic/device.hpp"

namespace gdrbench::softverbs {
namespace {

constexpr std::uint64_t datagram_operations = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
constexpr std::uint64_t unreliable_operations =
    datagram_operations | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
constexpr std::uint64_t reliable_operations = unreliable_operations | IBV_QP_EX_WITH_RDMA_READ |
                                              IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                              IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

/// IBV_QP_EX_WITH_… of a type; 0 of one that is not offered.
std::uint64_t operations_of(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
      return reliable_operations;
    case IBV_QPT_UC:
      return unreliable_operations;
    case IBV_QPT_UD:
      return datagram_operations;
    default:
      return 0;
  }
}

void check(ibv_context* context, const ibv_qp_init_attr_ex& attributes) {
  constexpr std::uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  refuse_if((attributes.comp_mask & ~known) != 0, EOPNOTSUPP);
  const std::uint64_t offered = operations_of(attributes.qp_type);
  refuse_if(offered == 0, EOPNOTSUPP);
  if ((attributes.comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || attributes.pd == nullptr ||
      attributes.send_cq == nullptr || attributes.recv_cq == nullptr || attributes.pd->context != context ||
      attributes.send_cq->context != context || attributes.recv_cq->context != context)
    refuse(EINVAL);
  refuse_if(attributes.srq != nullptr && attributes.srq->context != context);
  if ((attributes.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0)
    refuse_if((attributes.send_ops_flags & ~offered) != 0, EOPNOTSUPP);
  const auto refuse_more = [](std::uint32_t value, std::uint32_t limit) { refuse_if(value > limit); };
  const ibv_qp_cap& cap = attributes.cap;
  refuse_more(cap.max_send_wr, max_work_requests);
  refuse_more(cap.max_send_sge, max_sge);
  refuse_more(cap.max_inline_data, max_inline_bytes);
  if (attributes.srq != nullptr) return;
  refuse_more(cap.max_recv_wr, max_work_requests);
  refuse_more(cap.max_recv_sge, max_sge);
}

}  // namespace

ibv_qp* operations::create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attributes) {
  return returns_null("ibv_create_qp", [&] {
    check(context, *attributes);
    if (attributes->srq != nullptr) attributes->cap.max_recv_wr = attributes->cap.max_recv_sge = 0;
    auto* const queue_pair = new QueuePair(Context::of(context), *attributes);
    if ((attributes->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0) install_send_operations(*queue_pair);
    return queue_pair->abi();
  });
}

GDRBENCH_VERB ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
  ibv_qp_init_attr_ex extended{};
  extended.qp_context = attributes->qp_context;
  extended.send_cq = attributes->send_cq;
  extended.recv_cq = attributes->recv_cq;
  extended.srq = attributes->srq;
  extended.cap = attributes->cap;
  extended.qp_type = attributes->qp_type;
  extended.sq_sig_all = attributes->sq_sig_all;
  extended.comp_mask = IBV_QP_INIT_ATTR_PD;
  extended.pd = pd;
  ibv_qp* const created = operations::create_qp_ex(pd->context, &extended);
  if (created != nullptr) attributes->cap = extended.cap;
  return created;
}

GDRBENCH_VERB ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  QueuePair& queue_pair = QueuePair::of(qp);
  return queue_pair.wr_start == nullptr ? nullptr : &queue_pair;
}

GDRBENCH_VERB int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  return returns_errno("ibv_modify_qp", [&] { return QueuePair::of(qp).modify(*attributes, mask); });
}

GDRBENCH_VERB int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attributes, int, ibv_qp_init_attr* init) {
  return returns_errno("ibv_query_qp", [&] {
    QueuePair::of(qp).query(*attributes, *init);
    return 0;
  });
}

GDRBENCH_VERB int ibv_destroy_qp(ibv_qp* qp) {
  delete &QueuePair::of(qp);
  return 0;
}

// Data arrives as one copy after another, with the last byte last, not by ascending address.
GDRBENCH_VERB int ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, std::uint32_t) {
  return 0;
}

GDRBENCH_VERB int ibv_query_ece(ibv_qp*, ibv_ece* ece) {
  *ece = {};
  return 0;
}

GDRBENCH_VERB int ibv_set_ece(ibv_qp*, ibv_ece* ece) {
  return ece->vendor_id == 0 ? 0 : EOPNOTSUPP;
}

GDRBENCH_VERB int ibv_attach_mcast(ibv_qp*, const ibv_gid*, std::uint16_t) {
  return EOPNOTSUPP;
}

GDRBENCH_VERB int ibv_detach_mcast(ibv_qp*, const ibv_gid*, std::uint16_t) {
  return EOPNOTSUPP;
}

}  // namespace gdrbench::softverbs
