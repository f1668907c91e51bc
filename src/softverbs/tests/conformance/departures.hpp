#pragma once

#include <filesystem>

#include "nic.hpp"

/// Where a device does otherwise than the InfiniBand specification or the manual pages say. One function a
/// difference: it returns what to expect of the device under test, and its comment says what soft-RoCE does
/// instead (Linux 6.1 with rdma-core 44).
namespace gdrbench::conformance {

/// Kernel soft-RoCE: it alone names the netdev that it sits on.
inline bool rxe() {
  static const bool is_rxe =
      std::filesystem::exists(std::filesystem::path("/sys/class/infiniband") / device_name() / "parent");
  return is_rxe;
}

/// Of a send whose lkey is unknown, deregistered or another domain's. rxe: LOC_QP_OP_ERR; a range outside the
/// region is LOC_PROT_ERR there too.
inline ibv_wc_status unusable_lkey() {
  return rxe() ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_PROT_ERR;
}

/// Of a receive whose buffer may not be written. rxe: LOC_QP_OP_ERR.
inline ibv_wc_status unusable_receive() {
  return rxe() ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_PROT_ERR;
}

/// Of a send longer than its receive. rxe: REM_OP_ERR, for it takes the receive for a malformed one.
inline ibv_wc_status send_to_short_receive() {
  return rxe() ? IBV_WC_REM_OP_ERR : IBV_WC_REM_INV_REQ_ERR;
}

/// Of a receive shorter than its message. rxe: LOC_QP_OP_ERR, for the same reason.
inline ibv_wc_status short_receive() {
  return rxe() ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_LEN_ERR;
}

/// Of a message beyond the port's max_msg_sz. rxe: sends it.
inline ibv_wc_status oversized_message() {
  return rxe() ? IBV_WC_SUCCESS : IBV_WC_LOC_LEN_ERR;
}

/// Whether an atomic on a misaligned address reaches the responder. rxe: ibv_post_send refuses it with
/// EINVAL.
inline bool responder_sees_misaligned_atomics() {
  return !rxe();
}

/// Whether a request that the responder refuses is an asynchronous event there. rxe: raises none.
inline bool refused_requests_are_events() {
  return !rxe();
}

/// Whether IBV_EVENT_QP_LAST_WQE_REACHED follows the failure of a queue pair with shared receives. rxe: not.
inline bool last_shared_receive_is_an_event() {
  return !rxe();
}

/// Whether receives are flushed that are posted in the error state. rxe: keeps them without a completion.
inline bool late_receives_are_flushed() {
  return !rxe();
}

/// Whether bad_wr names the request where a queue takes none in its state. rxe: leaves it null.
inline bool bad_wr_is_set_in_a_wrong_state() {
  return !rxe();
}

/// Whether a send that was refused in a wrong state is forgotten. rxe: executes it once the state is right.
inline bool refused_sends_are_forgotten() {
  return !rxe();
}

/// Whether a send queue goes on by itself when it leaves SQD. rxe: waits for the next request.
inline bool drained_queue_resumes() {
  return !rxe();
}

/// Whether a P_Key index beyond the table is refused. rxe: ignores the index.
inline bool p_key_index_is_checked() {
  return !rxe();
}

/// Whether a max_dest_rd_atomic beyond max_qp_rd_atom is refused. rxe: takes any.
inline bool served_reads_are_bounded() {
  return !rxe();
}

/// Whether the top bit of a request's Q_Key stands for that of its own queue pair. rxe: sends the bits as
/// they are.
inline bool q_key_has_a_privileged_form() {
  return !rxe();
}

/// Whether ibv_create_srq returns the size that ibv_query_srq reports. rxe: returns the wish, and holds more.
inline bool new_shared_queue_tells_its_size() {
  return !rxe();
}

/// What ibv_wr_complete returns of a batch that the queue cannot hold. rxe: ENOSPC.
inline int batch_beyond_the_queue() {
  return rxe() ? ENOSPC : ENOMEM;
}

/// Whether ibv_wr_set_sge_list takes elements of several lengths. rxe: counts the first one's for each.
inline bool batched_lists_may_be_uneven() {
  return !rxe();
}

/// Whether ibv_wr_set_inline_data_list works. rxe: sends no bytes.
inline bool batched_inline_lists_work() {
  return !rxe();
}

/// Whether an unreliable connection drops a send longer than its receive, which then serves the next one.
/// rxe: the receive completes with an error, and so does its queue pair.
inline bool unreliable_sends_that_do_not_fit_are_dropped() {
  return !rxe();
}

/// Whether a READ is refused when it is posted to an unreliable connection. rxe: completes with an error.
inline bool unreliable_reads_are_refused_when_posted() {
  return !rxe();
}

/// Where an error of its own leaves an unreliable connection's requester: the send queue's error state, in
/// which it still receives. rxe: ERR.
inline ibv_qp_state state_after_unreliable_local_error() {
  return rxe() ? IBV_QPS_ERR : IBV_QPS_SQE;
}

/// No promise of the specification, but what one wire does: rxe handles acknowledgements and requests in two
/// tasks, and either may be first.
inline bool sends_complete_before_their_answers() {
  return !rxe();
}

/// No promise either: the kernel keeps the queue pairs of a process as long as a child has the device open.
inline bool queue_pairs_end_with_their_process() {
  return device_name().starts_with("softverbs");
}

}  // namespace gdrbench::conformance
