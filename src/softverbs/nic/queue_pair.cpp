#include "nic/queue_pair.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "nic/datagrams.hpp"
#include "nic/engine.hpp"
#include "nic/nic.hpp"

namespace gdrbench::softverbs {
namespace {

// A remote may call before this end has been told of it.
constexpr auto pending_timeout = std::chrono::seconds(10);
constexpr std::size_t max_pending = 4;

ibv_wc_opcode completion_opcode(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_WC_FETCH_ADD;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return IBV_WC_COMP_SWAP;
    default:
      return IBV_WC_SEND;
  }
}

bool same(const ibv_gid& left, const ibv_gid& right) {
  return std::memcmp(left.raw, right.raw, sizeof left.raw) == 0;
}

}  // namespace

QueuePair::QueuePair(Context& of_context, const ibv_qp_init_attr_ex& init)
    : ibv_qp_ex{},
      owner(of_context),
      nic(of_context.nic().shared_from_this()),
      capacity(init.cap),
      all_signaled(init.sq_sig_all != 0),
      sends(init.cap.max_send_wr),
      receives(static_cast<int>(init.srq == nullptr ? init.cap.max_recv_wr : 0),
               static_cast<int>(init.cap.max_recv_sge)),
      requester(*this),
      responder(*this) {
  qp_base.context = &of_context.context;
  qp_base.qp_context = init.qp_context;
  qp_base.pd = init.pd;
  qp_base.send_cq = init.send_cq;
  qp_base.recv_cq = init.recv_cq;
  qp_base.srq = init.srq;
  qp_base.qp_type = init.qp_type;
  qp_base.state = IBV_QPS_RESET;
  pthread_mutex_init(&qp_base.mutex, nullptr);
  pthread_cond_init(&qp_base.cond, nullptr);
  qp_base.qp_num = nic->queue_pairs().insert(*this);
  qp_base.handle = qp_base.qp_num;
  send_completions().attach(*this);
  receive_completions().attach(*this);
  ProtectionDomain::of(qp_base.pd).users++;
  if (shared_receives() != nullptr) shared_receives()->users++;
}

QueuePair::~QueuePair() {
  send_completions().detach(*this);
  receive_completions().detach(*this);
  nic->queue_pairs().remove(*this);
  requester.reset();
  responder.reset();
  owner.events().forget(abi());
  if (shared_receives() != nullptr) shared_receives()->users--;
  ProtectionDomain::of(qp_base.pd).users--;
  pthread_cond_destroy(&qp_base.cond);
  pthread_mutex_destroy(&qp_base.mutex);
}

bool QueuePair::may_receive() const {
  const ibv_qp_state state = qp_base.state;
  return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE;
}

bool QueuePair::may_send() const {
  return qp_base.state == IBV_QPS_RTS || qp_base.state == IBV_QPS_SQD;
}

SegmentList QueuePair::list_of(const SendWork& work) const {
  return {{work.sg_list.data(), static_cast<std::size_t>(work.segments)}, qp_base.pd, nic->regions()};
}

SegmentList QueuePair::list_of(const ReceiveWork& work) const {
  const ibv_pd* const domain = qp_base.srq == nullptr ? qp_base.pd : qp_base.srq->pd;
  return {{work.sg_list.data(), static_cast<std::size_t>(work.segments)}, domain, nic->regions()};
}

bool QueuePair::take_receive(ReceiveWork& work) {
  return shared_receives() != nullptr ? shared_receives()->take(work) : receives.take(work);
}

void QueuePair::complete_send(const SendWork& work) {
  if (work.status == IBV_WC_SUCCESS && !all_signaled && (work.flags & IBV_SEND_SIGNALED) == 0) return;
  ibv_wc entry{};
  entry.wr_id = work.id;
  entry.status = work.status;
  entry.opcode = completion_opcode(work.opcode);
  entry.vendor_err = work.vendor_error;
  entry.byte_len = static_cast<std::uint32_t>(work.length);
  entry.qp_num = qp_base.qp_num;
  finished_.push_back({&send_completions(), entry, false});
}

void QueuePair::complete_receive(const ibv_wc& entry, bool solicited) {
  finished_.push_back({&receive_completions(), entry, solicited});
  finished_.back().entry.qp_num = qp_base.qp_num;
}

void QueuePair::settle() {
  // Going to the error state adds more of them.
  for (std::size_t i = 0; i < finished_.size(); ++i) {
    const Finished one = finished_[i];
    one.queue->push(one.entry, one.solicited);
    if (one.queue->overrun() && qp_base.state != IBV_QPS_ERR) {
      raise(IBV_EVENT_QP_FATAL);
      to_error();
    }
  }
  finished_.clear();
}

void QueuePair::raise(ibv_event_type type) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.qp = abi();
  owner.events().raise(abi(), event);
}

void QueuePair::to_error() {
  if (qp_base.state == IBV_QPS_ERR) return;
  qp_base.state = IBV_QPS_ERR;
  flush_sends();
  flush_receives();
  if (shared_receives() != nullptr) raise(IBV_EVENT_QP_LAST_WQE_REACHED);
}

void QueuePair::to_send_error() {
  if (!may_send()) return;
  qp_base.state = IBV_QPS_SQE;
  flush_sends();
}

void QueuePair::flush_sends() {
  for (; !sends.empty(); sends.pop()) {
    sends.front().status = IBV_WC_WR_FLUSH_ERR;
    sends.front().vendor_error = 0;
    complete_send(sends.front());
  }
  requester.forget_work();
}

void QueuePair::flush_receives() {
  ReceiveWork work;
  ibv_wc entry{};
  entry.status = IBV_WC_WR_FLUSH_ERR;
  entry.opcode = IBV_WC_RECV;
  const auto complete = [&] {
    entry.wr_id = work.id;
    complete_receive(entry, true);
  };
  if (responder.take_unfinished(work)) complete();
  while (receives.take(work)) complete();
}

StepResult QueuePair::step() {
  StepResult result;
  if (is_connected()) {
    responder.step(result);
    requester.step(result);
    if (!pending_.empty()) expire_pending(result);
  } else {
    send_datagrams(*this, result);
  }
  if (wants_drained_ && qp_base.state == IBV_QPS_SQD && requester.idle()) {
    wants_drained_ = false;
    raise(IBV_EVENT_SQ_DRAINED);
  }
  settle();
  return result;
}

void QueuePair::progress() {
  std::size_t frames = is_connected() ? 0 : nic->datagrams().receive();
  if (const std::unique_lock guard(lock, std::try_to_lock); guard) {
    const StepResult result = step();
    frames += result.frames;
    nic->engine().wake_by(result.wake_at);
  }
  if (frames > 0) nic->engine().count_polled(frames);
}

StepResult QueuePair::run() {
  const std::lock_guard guard(lock);
  return step();
}

bool QueuePair::arm() {
  const std::lock_guard guard(lock);
  if (!may_receive()) return false;
  // A message that waits for a receive waits for an event of its own, but its link must be armed all the
  // same: the program may post the receive while the engine sleeps.
  const bool request = responder.link() != nullptr && responder.link()->arm(responder.stalled());
  const bool answer = requester.link() != nullptr && requester.link()->arm();
  return request || answer;
}

void QueuePair::disarm() {
  const std::lock_guard guard(lock);
  if (responder.link() != nullptr) responder.link()->disarm();
  if (requester.link() != nullptr) requester.link()->disarm();
}

void QueuePair::on_datagram(const FrameHeader& header, const RingSpans& payload, const ibv_gid& source,
                            const ibv_gid& destination) {
  const std::lock_guard guard(lock);
  if (is_connected() || !may_receive()) return;
  receive_datagram(*this, header, payload, source, destination);
  settle();
}

int QueuePair::post_receives(ibv_recv_wr* list, ibv_recv_wr** bad) {
  const std::lock_guard guard(lock);
  if (qp_base.state == IBV_QPS_RESET || qp_base.srq != nullptr) {
    *bad = list;
    return EINVAL;
  }
  const int error = receives.post(list, bad);
  if (qp_base.state == IBV_QPS_ERR) {
    flush_receives();
    settle();
  } else if (responder.stalled()) {
    nic->engine().wake_by(wake_time(step()));
  }
  return error;
}

Clock::time_point QueuePair::wake_time(const StepResult& result) {
  return result.more ? Clock::time_point::min() : result.wake_at;
}

// A remote that calls before this queue pair is ready waits until it is.
void QueuePair::on_connection_request(ConnectionRequest request) {
  const std::lock_guard guard(lock);
  if (!is_connected() || qp_base.state == IBV_QPS_ERR) return request.refuse(Refusal::not_expected);
  if (!may_receive()) {
    if (pending_.size() >= max_pending) return request.refuse(Refusal::busy);
    pending_.push_back({std::move(request), Clock::now() + pending_timeout});
    return;
  }
  if (!expects(request.hello())) return request.refuse(Refusal::not_expected);
  if (std::unique_ptr<Link> link = request.accept(); link != nullptr) responder.connect(std::move(link));
}

bool QueuePair::expects(const Hello& hello) const {
  const ibv_global_route& route = attributes.ah_attr.grh;
  return hello.kind == link_kind() && hello.source_qpn == attributes.dest_qp_num &&
         hello.psn == attributes.rq_psn && same(hello.source_gid, route.dgid) &&
         same(hello.destination_gid, nic->gids()[route.sgid_index].gid);
}

void QueuePair::answer_pending() {
  std::vector<Waiting> waiting = std::exchange(pending_, {});
  for (Waiting& one : waiting) {
    if (!expects(one.request.hello())) {
      one.request.refuse(Refusal::not_expected);
    } else if (std::unique_ptr<Link> link = one.request.accept(); link != nullptr) {
      responder.connect(std::move(link));
      // The engine may be asleep, and has not armed it.
      nic->engine().wake();
    }
  }
}

void QueuePair::expire_pending(StepResult& result) {
  const Clock::time_point now = Clock::now();
  std::erase_if(pending_, [&](Waiting& one) {
    result.wake_at = std::min(result.wake_at, one.until);
    if (one.until > now) return false;
    one.request.refuse(Refusal::not_ready);
    return true;
  });
}

}  // namespace gdrbench::softverbs
