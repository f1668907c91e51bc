#pragma once

#include <infiniband/verbs.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "link/stream_socket.hpp"

namespace gdrbench::softverbs {

/// Events that a program waits for on a file descriptor (an eventfd that counts them, so that poll and
/// O_NONBLOCK work as the program sets them), takes one at a time and acknowledges. Each has an owner: the
/// verbs object by the address that programs know (ibv_cq*, ibv_qp*, ibv_srq*). Thread-safe.
template <class Event>
class EventQueue {
 public:
  /// Throws std::system_error.
  EventQueue();
  int descriptor() const { return descriptor_.get(); }

  void raise(const void* owner, const Event& event);
  /// Blocks as the descriptor does. 0, or an errno value (EAGAIN, EINTR …).
  int take(Event& event);
  void acknowledge(const void* owner, unsigned count);
  /// Before the owner is destroyed: forgets its events that nobody took, waits until those taken are
  /// acknowledged.
  void forget(const void* owner);

 private:
  bool take_first(Event& event);
  int wait_readable() const;

  struct Entry {
    const void* owner;
    Event event;
  };
  Descriptor descriptor_;  ///< its count is the number of entries whenever `lock_` is free
  std::mutex lock_;
  std::condition_variable acknowledged_;
  std::deque<Entry> entries_;
  std::unordered_map<const void*, unsigned> taken_;
};

extern template class EventQueue<ibv_cq*>;
extern template class EventQueue<ibv_async_event>;

}  // namespace gdrbench::softverbs
