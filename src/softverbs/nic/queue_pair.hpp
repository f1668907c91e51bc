#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "link/handshake.hpp"
#include "nic/completion_queue.hpp"
#include "nic/receive_queue.hpp"
#include "nic/requester.hpp"
#include "nic/responder.hpp"
#include "nic/scatter_gather.hpp"
#include "nic/send_queue.hpp"

namespace gdrbench::softverbs {

/// A step stops after so much, for the sake of the other queue pairs and of who waits for the lock.
constexpr int frames_a_step = 64;
constexpr std::uint64_t bytes_a_step = std::uint64_t{1} << 20;

/// What a step of a queue pair has done and what it waits for.
struct StepResult {
  std::size_t frames = 0;  ///< frames handled
  bool more = false;       ///< it stopped for fairness: more can be done at once
  Clock::time_point wake_at = Clock::time_point::max();
};

/// A queue pair: RC and UC, a requester and a responder with a connection each; UD, a sender and receiver of
/// datagrams. All that is public below `lock` is used while holding it.
class QueuePair : public ibv_qp_ex, public Progressing {
 public:
  /// Numbers and announces itself; throws std::system_error (ENOMEM: no number left).
  QueuePair(Context& of_context, const ibv_qp_init_attr_ex& attributes);
  /// Leaves the completion queues and the engine first, so that nobody is in it.
  ~QueuePair() override;
  static QueuePair& of(ibv_qp* qp) { return *static_cast<QueuePair*>(reinterpret_cast<ibv_qp_ex*>(qp)); }

  ibv_qp* abi() { return &qp_base; }
  /// RC: the remote acknowledges, and is asked again.
  bool is_reliable() const { return qp_base.qp_type == IBV_QPT_RC; }
  /// RC or UC: it talks to one other queue pair.
  bool is_connected() const { return is_reliable() || qp_base.qp_type == IBV_QPT_UC; }
  LinkKind link_kind() const { return is_reliable() ? LinkKind::reliable : LinkKind::unreliable; }
  CompletionQueue& send_completions() { return CompletionQueue::of(qp_base.send_cq); }
  CompletionQueue& receive_completions() { return CompletionQueue::of(qp_base.recv_cq); }
  SharedReceiveQueue* shared_receives() {
    return qp_base.srq == nullptr ? nullptr : &SharedReceiveQueue::of(qp_base.srq);
  }

  // As the verbs of these names; each takes the lock.
  int modify(const ibv_qp_attr& attributes, int mask);
  void query(ibv_qp_attr& attributes, ibv_qp_init_attr& init);
  int post_receives(ibv_recv_wr* list, ibv_recv_wr** bad);

  /// By a thread that polls a completion queue.
  void progress() override;
  /// By the engine.
  StepResult run();
  /// Asks remotes to wake the engine. True: something came meanwhile.
  bool arm();
  void disarm();
  /// A remote's requester wants to be connected to this responder.
  void on_connection_request(ConnectionRequest request);
  /// A datagram for this queue pair, from `source` to `destination`.
  void on_datagram(const FrameHeader& header, const RingSpans& payload, const ibv_gid& source,
                   const ibv_gid& destination);

  std::mutex lock;

  /// Sends what was posted and handles what came, then gives completions to their queues.
  StepResult step();
  /// Whether a state allows it.
  bool may_receive() const;
  bool may_send() const;
  SegmentList list_of(const SendWork& work) const;
  SegmentList list_of(const ReceiveWork& work) const;
  bool take_receive(ReceiveWork& work);
  void flush_sends();
  static Clock::time_point wake_time(const StepResult& result);
  /// Entries appear in their queues at the end of a step, once the remote has its answers: who sees one may
  /// exit.
  void complete_send(const SendWork& work);
  void complete_receive(const ibv_wc& entry, bool solicited);
  void raise(ibv_event_type type);
  /// To the error state: everything that is posted is flushed.
  void to_error();
  /// UC and UD, after a send that failed: sends are flushed, receiving goes on.
  void to_send_error();
  /// Gives completions to their queues.
  void settle();

  Context& owner;
  const std::shared_ptr<Nic> nic;
  ibv_qp_cap capacity{};
  bool all_signaled = false;
  ibv_qp_attr attributes{};  ///< what modify has set
  SendQueue sends;
  ReceiveQueue receives;
  Requester requester;
  Responder responder;
  int staging_error = 0;  ///< of the list that is being built between ibv_wr_start and ibv_wr_complete

 private:
  int change(const ibv_qp_attr& to, int mask);
  void reset();
  void flush_receives();
  bool expects(const Hello& hello) const;
  void answer_pending();
  void expire_pending(StepResult& result);

  struct Finished {
    CompletionQueue* queue;
    ibv_wc entry;
    bool solicited;
  };
  std::vector<Finished> finished_;
  struct Waiting {
    ConnectionRequest request;
    Clock::time_point until;
  };
  std::vector<Waiting> pending_;
  bool wants_drained_ = false;  ///< IBV_EVENT_SQ_DRAINED was asked for
};

}  // namespace gdrbench::softverbs
