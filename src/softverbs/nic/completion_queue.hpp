#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "nic/context.hpp"
#include "nic/event_queue.hpp"

namespace gdrbench::softverbs {

/// A completion channel; `fd` is the event queue's descriptor.
class CompletionChannel : public ibv_comp_channel {
 public:
  explicit CompletionChannel(ibv_context& of_context);
  static CompletionChannel& of(ibv_comp_channel* channel) {
    return *static_cast<CompletionChannel*>(channel);
  }
  EventQueue<ibv_cq*>& events() { return events_; }

 private:
  EventQueue<ibv_cq*> events_;
};

/// Something that moves when a completion queue is polled: a queue pair.
class Progressing {
 public:
  virtual ~Progressing() = default;
  /// Handles what has come and sends what can be sent, unless another thread is doing it.
  virtual void progress() = 0;
};

/// A completion queue. `push` may be called under the lock of a queue pair; `poll` calls `progress` of the
/// attached queue pairs, without holding the lock of the entries.
class CompletionQueue : public ibv_cq_ex {
 public:
  /// Has exactly `entries` (from 1 to max_completions) places.
  CompletionQueue(Context& of_context, int entries, CompletionChannel* to_channel, void* user);
  /// Waits until its events that the program has taken are acknowledged.
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  static CompletionQueue& of(ibv_cq* cq) {
    return *static_cast<CompletionQueue*>(reinterpret_cast<ibv_cq_ex*>(cq));
  }
  ibv_cq* abi() { return ibv_cq_ex_to_cq(this); }

  /// Adds an entry and raises the channel's event if asked for (`solicited`: it counts for a notification
  /// that was asked for with solicited_only; failed entries always do). Full: the entry is lost, as are all
  /// that come later, the queue is in error, and the context gets IBV_EVENT_CQ_ERR, once.
  void push(const ibv_wc& entry, bool solicited);
  /// As ibv_poll_cq: the number of entries taken. Moves the attached queue pairs when there is none.
  int poll(int count, ibv_wc* entries);
  void request_notification(bool solicited_only);
  /// 0, or EINVAL: fewer than are in use, or not in the range.
  int resize(int entries);

  /// As the extended polling of these names: one entry at a time, by one thread between a `start_poll` that
  /// returned 0 and `end_poll`. ENOENT: there is none.
  int start_poll();
  int next_poll();
  void end_poll();
  /// The entry of the extended polling.
  const ibv_wc& current() const { return current_; }

  /// A queue pair may be attached twice, as sender and receiver. `detach` waits for a poll that is moving it.
  void attach(Progressing& queue_pair);
  void detach(Progressing& queue_pair);
  /// In error by overrun.
  bool overrun() const { return overrun_.load(std::memory_order_relaxed); }

  std::atomic<int> users{0};  ///< attachments; while there are any it cannot be destroyed (EBUSY)

 private:
  int take(int count, ibv_wc* entries);
  bool add(const ibv_wc& entry);

  Context& owner_;
  std::mutex lock_;  ///< of the entries and of what was asked for
  std::unique_ptr<ibv_wc[]> ring_;
  std::size_t capacity_, first_ = 0;
  std::atomic<std::size_t> used_{0};  ///< changed under the lock; read without, so that empty polls are cheap
  enum class Wanted { nothing, solicited, any } wanted_ = Wanted::nothing;
  std::atomic<bool> overrun_{false};

  struct Attached {
    Progressing* queue_pair;
    int times;
  };
  std::mutex moving_;  ///< of the list, held while its members progress
  std::vector<Attached> attached_;

  std::mutex polling_;  ///< held from start_poll to end_poll
  ibv_wc current_{};
};

}  // namespace gdrbench::softverbs
