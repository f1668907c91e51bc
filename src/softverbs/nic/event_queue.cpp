#include "nic/event_queue.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>

namespace gdrbench::softverbs {
namespace {

// By syscall(2), which is no cancellation point: a thread that the program cancels must not end between the
// queue and its count.

void count_up(int descriptor) {
  const std::uint64_t one = 1;
  (void)syscall(SYS_write, descriptor, &one, sizeof(one));
}

void count_down(int descriptor) {
  std::uint64_t one = 0;
  (void)syscall(SYS_read, descriptor, &one, sizeof(one));
}

}  // namespace

template <class Event>
EventQueue<Event>::EventQueue() : descriptor_(eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC)) {
  if (!descriptor_)
    throw std::system_error(errno, std::generic_category(),
                            "cannot create an eventfd to announce events on; raise the limit of open files "
                            "(ulimit -n)");
}

template <class Event>
void EventQueue<Event>::raise(const void* owner, const Event& event) {
  const std::lock_guard guard(lock_);
  entries_.push_back({owner, event});
  count_up(descriptor());
}

template <class Event>
int EventQueue<Event>::take(Event& event) {
  // The descriptor is read only under the lock and only when there is an entry: so that never blocks, and
  // `forget` can take back what it announced.
  while (!take_first(event))
    if (const int error = wait_readable()) return error;
  return 0;
}

template <class Event>
bool EventQueue<Event>::take_first(Event& event) {
  const std::lock_guard guard(lock_);
  if (entries_.empty()) return false;
  event = entries_.front().event;
  ++taken_[entries_.front().owner];
  entries_.pop_front();
  count_down(descriptor());
  return true;
}

template <class Event>
int EventQueue<Event>::wait_readable() const {
  const int flags = fcntl(descriptor(), F_GETFL);
  if (flags < 0) return errno;
  if ((flags & O_NONBLOCK) != 0) return EAGAIN;
  pollfd waited{descriptor(), POLLIN, 0};
  return poll(&waited, 1, -1) < 0 ? errno : 0;
}

template <class Event>
void EventQueue<Event>::acknowledge(const void* owner, unsigned count) {
  const std::lock_guard guard(lock_);
  const auto found = taken_.find(owner);
  if (found == taken_.end()) return;
  found->second -= std::min(found->second, count);
  if (found->second != 0) return;
  taken_.erase(found);
  acknowledged_.notify_all();
}

template <class Event>
void EventQueue<Event>::forget(const void* owner) {
  std::unique_lock guard(lock_);
  const auto untaken = std::erase_if(entries_, [owner](const Entry& entry) { return entry.owner == owner; });
  for (std::size_t i = 0; i < untaken; ++i) count_down(descriptor());
  acknowledged_.wait(guard, [&] { return !taken_.contains(owner); });
}

template class EventQueue<ibv_cq*>;
template class EventQueue<ibv_async_event>;

}  // namespace gdrbench::softverbs
