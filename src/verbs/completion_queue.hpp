#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <memory>
#include <span>

#include "verbs/device.hpp"

namespace gdrbench::verbs {

struct CompletionQueueAttributes {
  std::uint32_t entries = 0;
  bool events = false;  ///< with a channel whose descriptor becomes readable when a completion arrives
};

struct DestroyCompletionQueue {
  static constexpr const char* name = "ibv_destroy_cq";
  static int destroy(ibv_cq* queue) { return ibv_destroy_cq(queue); }
};
struct DestroyCompletionChannel {
  static constexpr const char* name = "ibv_destroy_comp_channel";
  static int destroy(ibv_comp_channel* channel) { return ibv_destroy_comp_channel(channel); }
};

/// With events, the queue is armed from its creation on, and again by each take_event before it returns. So a
/// completion either arrives before the arming, where polling until empty afterwards finds it, or after it,
/// where it makes event_fd() readable: none is missed by a caller who polls until empty after every
/// take_event.
class CompletionQueue {
 public:
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;
  ~CompletionQueue();

  /// Never blocks. Throws SystemError when the device is gone.
  std::size_t poll(std::span<ibv_wc> out) const {
    const int found = ibv_poll_cq(queue_.get(), static_cast<int>(out.size()), out.data());
    if (found < 0) throw_poll_failed(found);
    return static_cast<std::size_t>(found);
  }

  /// −1 without events. Non-blocking.
  int event_fd() const { return channel_ ? channel_->fd : -1; }
  /// Takes one event if there is one, and arms the queue again.
  void take_event();

  ibv_cq* get() const { return queue_.get(); }

 private:
  friend class Device;
  CompletionQueue(std::shared_ptr<const Device> device, const CompletionQueueAttributes& attributes);
  void arm() const;
  [[noreturn]] void throw_poll_failed(int returned) const;

  std::shared_ptr<const Device> device_;
  Handle<ibv_comp_channel, DestroyCompletionChannel> channel_;
  Handle<ibv_cq, DestroyCompletionQueue> queue_;
  unsigned unacknowledged_ = 0;
};

}  // namespace gdrbench::verbs
