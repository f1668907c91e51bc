#include "verbs/completion_queue.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include "gdrbench/error.hpp"
#include "verbs/check.hpp"

namespace gdrbench::verbs {
namespace {

// Acknowledging takes a lock, so it is done for many events at once.
constexpr unsigned acknowledge_batch = 256;

ibv_comp_channel* create_channel(const Device& device) {
  return check_pointer(ibv_create_comp_channel(device.context()), Step::create,
                       fmt::format("create completion channel on {}", device.name()));
}

}  // namespace

CompletionQueue::CompletionQueue(std::shared_ptr<const Device> device,
                                 const CompletionQueueAttributes& attributes)
    : device_(std::move(device)) {
  if (attributes.entries > static_cast<std::uint32_t>(device_->attributes().max_cqe))
    throw Unavailable(
        fmt::format("a completion queue of {} entries is needed, {} allows {}: use fewer queue pairs or "
                    "less depth",
                    attributes.entries, device_->name(), device_->attributes().max_cqe));
  if (attributes.events) {
    channel_ = own<DestroyCompletionChannel>(create_channel(*device_), device_);
    const int flags = fcntl(channel_->fd, F_GETFL);
    if (flags < 0 || fcntl(channel_->fd, F_SETFL, flags | O_NONBLOCK) < 0)
      throw SystemError(errno,
                        fmt::format("make the completion channel of {} non-blocking", device_->name()));
  }
  queue_ = own<DestroyCompletionQueue>(
      check_pointer(
          ibv_create_cq(device_->context(), static_cast<int>(attributes.entries), nullptr, channel_.get(), 0),
          Step::create,
          fmt::format("create completion queue of {} entries on {}", attributes.entries, device_->name())),
      device_);
  if (attributes.events) arm();
}

CompletionQueue::~CompletionQueue() {
  // Destroying the queue waits until all events taken from it are acknowledged.
  if (unacknowledged_ > 0) ibv_ack_cq_events(queue_.get(), unacknowledged_);
}

void CompletionQueue::arm() const {
  check_returned(ibv_req_notify_cq(queue_.get(), 0), Step::create,
                 fmt::format("ask {} for completion events", device_->name()));
}

void CompletionQueue::take_event() {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  if (ibv_get_cq_event(channel_.get(), &queue, &context) != 0) {
    if (errno == EAGAIN || errno == EINTR) return;
    throw_system_error(Step::use, errno, fmt::format("take a completion event of {}", device_->name()));
  }
  if (++unacknowledged_ == acknowledge_batch) {
    ibv_ack_cq_events(queue_.get(), unacknowledged_);
    unacknowledged_ = 0;
  }
  arm();
}

void CompletionQueue::throw_poll_failed(int returned) const {
  throw_system_error(Step::use, returned < -1 ? -returned : EIO,
                     fmt::format("poll completion queue of {}", device_->name()));
}

}  // namespace gdrbench::verbs
