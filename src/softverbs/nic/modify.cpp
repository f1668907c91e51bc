// What ibv_modify_qp and ibv_query_qp do to a queue pair.
#include <algorithm>
#include <cerrno>
#include <iterator>

#include "nic/context.hpp"
#include "nic/device.hpp"
#include "nic/engine.hpp"
#include "nic/queue_pair.hpp"

namespace gdrbench::softverbs {
namespace {

struct Transition {
  ibv_qp_state from, to;
  int required, optional;
};

constexpr int alternate_path = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;

constexpr Transition reliable[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_RTR,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
         IBV_QP_MIN_RNR_TIMER,
     IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | alternate_path},
    {IBV_QPS_RTR, IBV_QPS_RTS,
     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | alternate_path},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | alternate_path},
    {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_RTS, 0,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | alternate_path},
    {IBV_QPS_SQD, IBV_QPS_SQD, 0,
     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_EN_SQD_ASYNC_NOTIFY},
};

constexpr Transition unreliable[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
     IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | alternate_path},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | alternate_path},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | alternate_path},
    {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | alternate_path},
    {IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS | IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
};

constexpr Transition datagram[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
    {IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
};

template <std::size_t N>
bool allowed(const Transition (&table)[N], ibv_qp_state from, ibv_qp_state to, int mask) {
  return std::any_of(std::begin(table), std::end(table), [&](const Transition& row) {
    return row.from == from && row.to == to && (mask & row.required) == row.required &&
           (mask & ~(row.required | row.optional)) == 0;
  });
}

/// Whether a queue pair of the type may go from one state to another with these attributes given (enum
/// ibv_qp_attr_mask): all that the transition requires, and nothing that it does not know. After the table in
/// the InfiniBand specification, 11.2.5.2, and the manual page ibv_modify_qp(3).
bool transition_allowed(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask) {
  mask &= ~IBV_QP_STATE;
  if (to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET)) return mask == 0;
  switch (type) {
    case IBV_QPT_RC:
      return allowed(reliable, from, to, mask);
    case IBV_QPT_UC:
      return allowed(unreliable, from, to, mask);
    default:
      return allowed(datagram, from, to, mask);
  }
}

constexpr std::uint32_t number_mask = 0xffffff;  // QPN and PSN have 24 bits
constexpr int remote_access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

bool values_allowed(const ibv_qp_attr& to, int mask, int gids) {
  const auto given = [mask](int bit) { return (mask & bit) != 0; };
  if (given(IBV_QP_PKEY_INDEX) && to.pkey_index != 0) return false;
  if (given(IBV_QP_PORT) && to.port_num != 1) return false;
  if (given(IBV_QP_ACCESS_FLAGS) && (to.qp_access_flags & ~(remote_access | IBV_ACCESS_LOCAL_WRITE)) != 0)
    return false;
  if (given(IBV_QP_AV) && check_address(to.ah_attr, gids) != 0) return false;
  if (given(IBV_QP_PATH_MTU) && (to.path_mtu < IBV_MTU_256 || to.path_mtu > port_mtu)) return false;
  if (given(IBV_QP_DEST_QPN) && to.dest_qp_num > number_mask) return false;
  if (given(IBV_QP_MAX_QP_RD_ATOMIC) && to.max_rd_atomic > max_rd_atomic) return false;
  if (given(IBV_QP_MAX_DEST_RD_ATOMIC) && to.max_dest_rd_atomic > max_rd_atomic) return false;
  if (given(IBV_QP_MIN_RNR_TIMER) && to.min_rnr_timer > 31) return false;
  if (given(IBV_QP_TIMEOUT) && to.timeout > 31) return false;
  if (given(IBV_QP_RETRY_CNT) && to.retry_cnt > 7) return false;
  return !given(IBV_QP_RNR_RETRY) || to.rnr_retry <= 7;
}

void assign(ibv_qp_attr& attributes, const ibv_qp_attr& to, int mask) {
  const auto take = [&](int bit, auto member) {
    if ((mask & bit) != 0) attributes.*member = to.*member;
  };
  take(IBV_QP_ACCESS_FLAGS, &ibv_qp_attr::qp_access_flags);
  take(IBV_QP_PKEY_INDEX, &ibv_qp_attr::pkey_index);
  take(IBV_QP_PORT, &ibv_qp_attr::port_num);
  take(IBV_QP_QKEY, &ibv_qp_attr::qkey);
  take(IBV_QP_AV, &ibv_qp_attr::ah_attr);
  take(IBV_QP_PATH_MTU, &ibv_qp_attr::path_mtu);
  take(IBV_QP_TIMEOUT, &ibv_qp_attr::timeout);
  take(IBV_QP_RETRY_CNT, &ibv_qp_attr::retry_cnt);
  take(IBV_QP_RNR_RETRY, &ibv_qp_attr::rnr_retry);
  take(IBV_QP_RQ_PSN, &ibv_qp_attr::rq_psn);
  take(IBV_QP_SQ_PSN, &ibv_qp_attr::sq_psn);
  take(IBV_QP_MAX_QP_RD_ATOMIC, &ibv_qp_attr::max_rd_atomic);
  take(IBV_QP_MAX_DEST_RD_ATOMIC, &ibv_qp_attr::max_dest_rd_atomic);
  take(IBV_QP_MIN_RNR_TIMER, &ibv_qp_attr::min_rnr_timer);
  take(IBV_QP_DEST_QPN, &ibv_qp_attr::dest_qp_num);
  attributes.rq_psn &= number_mask;
  attributes.sq_psn &= number_mask;
}

}  // namespace

int QueuePair::modify(const ibv_qp_attr& to, int mask) {
  const std::lock_guard guard(lock);
  const int error = change(to, mask);
  if (error == 0) nic->engine().wake_by(wake_time(step()));
  return error;
}

int QueuePair::change(const ibv_qp_attr& to, int mask) {
  const ibv_qp_state from = qp_base.state;
  const ibv_qp_state next = (mask & IBV_QP_STATE) != 0 ? to.qp_state : from;
  if ((mask & IBV_QP_CUR_STATE) != 0 && to.cur_qp_state != from) return EINVAL;
  if ((mask & (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)) != 0) return EOPNOTSUPP;
  if (!transition_allowed(qp_base.qp_type, from, next, mask)) return EINVAL;
  if (!values_allowed(to, mask, static_cast<int>(nic->gids().size()))) return EINVAL;
  if (next == IBV_QPS_RESET) {
    reset();
    return 0;
  }
  if (next == IBV_QPS_ERR) {
    to_error();
    return 0;
  }
  assign(attributes, to, mask);
  qp_base.state = next;
  if (next == IBV_QPS_SQD)
    wants_drained_ = (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) != 0 && to.en_sqd_async_notify != 0;
  if (is_connected() && next == IBV_QPS_RTR) answer_pending();
  if (is_connected() && next == IBV_QPS_RTS) requester.dial();
  return 0;
}

void QueuePair::reset() {
  requester.reset();
  responder.reset();
  ReceiveWork dropped;
  responder.take_unfinished(dropped);
  while (receives.take(dropped)) {
  }
  sends.clear();
  pending_.clear();
  attributes = {};
  wants_drained_ = false;
  qp_base.state = IBV_QPS_RESET;
}

void QueuePair::query(ibv_qp_attr& into, ibv_qp_init_attr& init) {
  const std::lock_guard guard(lock);
  into = attributes;
  into.qp_state = into.cur_qp_state = qp_base.state;
  into.path_mig_state = IBV_MIG_MIGRATED;
  into.cap = capacity;
  into.sq_draining = qp_base.state == IBV_QPS_SQD && !requester.idle();
  init = {};
  init.qp_context = qp_base.qp_context;
  init.send_cq = qp_base.send_cq;
  init.recv_cq = qp_base.recv_cq;
  init.srq = qp_base.srq;
  init.cap = capacity;
  init.qp_type = qp_base.qp_type;
  init.sq_sig_all = all_signaled;
}

}  // namespace gdrbench::softverbs
