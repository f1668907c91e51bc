#include "nic/completion_queue.hpp"

#include <algorithm>
#include <cerrno>

#include "nic/device.hpp"

namespace gdrbench::softverbs {
namespace {

// Not initialised: the pages of a queue that is larger than its use are never touched.
std::unique_ptr<ibv_wc[]> make_ring(std::size_t entries) {
  return std::make_unique_for_overwrite<ibv_wc[]>(entries);
}

}  // namespace

CompletionQueue::CompletionQueue(Context& of_context, int entries, CompletionChannel* to_channel, void* user)
    : ibv_cq_ex{},
      owner_(of_context),
      ring_(make_ring(static_cast<std::size_t>(entries))),
      capacity_(static_cast<std::size_t>(entries)) {
  context = &of_context.context;
  channel = to_channel;
  cq_context = user;
  cqe = entries;
  pthread_mutex_init(&mutex, nullptr);
  pthread_cond_init(&cond, nullptr);
}

CompletionQueue::~CompletionQueue() {
  if (channel != nullptr) CompletionChannel::of(channel).events().forget(abi());
  owner_.events().forget(abi());
  pthread_cond_destroy(&cond);
  pthread_mutex_destroy(&mutex);
}

void CompletionQueue::push(const ibv_wc& entry, bool solicited) {
  std::unique_lock guard(lock_);
  if (overrun()) return;
  if (!add(entry)) {
    overrun_.store(true, std::memory_order_relaxed);
    guard.unlock();
    ibv_async_event event{};
    event.element.cq = abi();
    event.event_type = IBV_EVENT_CQ_ERR;
    owner_.events().raise(abi(), event);
    return;
  }
  const bool counts = wanted_ == Wanted::any ||
                      (wanted_ == Wanted::solicited && (solicited || entry.status != IBV_WC_SUCCESS));
  if (!counts) return;
  wanted_ = Wanted::nothing;
  guard.unlock();
  if (channel != nullptr) CompletionChannel::of(channel).events().raise(abi(), abi());
}

bool CompletionQueue::add(const ibv_wc& entry) {
  const std::size_t used = used_.load(std::memory_order_relaxed);
  if (used == capacity_) return false;
  const std::size_t place = first_ + used;
  ring_[place < capacity_ ? place : place - capacity_] = entry;
  used_.store(used + 1, std::memory_order_release);
  return true;
}

int CompletionQueue::take(int count, ibv_wc* entries) {
  if (used_.load(std::memory_order_acquire) == 0) return 0;
  const std::lock_guard guard(lock_);
  const std::size_t used = used_.load(std::memory_order_relaxed);
  const std::size_t taken = std::min(used, static_cast<std::size_t>(std::max(count, 0)));
  for (std::size_t i = 0; i < taken; ++i) {
    entries[i] = ring_[first_];
    if (++first_ == capacity_) first_ = 0;
  }
  used_.store(used - taken, std::memory_order_relaxed);
  return static_cast<int>(taken);
}

int CompletionQueue::poll(int count, ibv_wc* entries) {
  if (count <= 0) return 0;
  if (const int taken = take(count, entries)) return taken;
  {
    const std::unique_lock moving(moving_, std::try_to_lock);
    if (!moving) return 0;  // another thread moves them
    for (const Attached& attached : attached_) attached.queue_pair->progress();
  }
  return take(count, entries);
}

void CompletionQueue::request_notification(bool solicited_only) {
  {
    const std::lock_guard guard(lock_);
    // A wish for any entry includes solicited ones, and stays.
    wanted_ = std::max(wanted_, solicited_only ? Wanted::solicited : Wanted::any);
  }
  // Whoever asks is about to stop polling: the engine takes over.
  owner_.nic().take_over();
}

int CompletionQueue::resize(int entries) {
  if (entries < 1 || entries > max_completions) return EINVAL;
  const auto capacity = static_cast<std::size_t>(entries);
  auto ring = make_ring(capacity);
  const std::lock_guard guard(lock_);
  const std::size_t used = used_.load(std::memory_order_relaxed);
  if (capacity < used) return EINVAL;
  for (std::size_t i = 0; i < used; ++i) ring[i] = ring_[(first_ + i) % capacity_];
  ring_ = std::move(ring);
  first_ = 0;
  capacity_ = capacity;
  cqe = entries;
  return 0;
}

int CompletionQueue::start_poll() {
  polling_.lock();
  if (poll(1, &current_) == 1) return 0;
  polling_.unlock();
  return ENOENT;
}

int CompletionQueue::next_poll() {
  return take(1, &current_) == 1 ? 0 : ENOENT;
}

void CompletionQueue::end_poll() {
  polling_.unlock();
}

void CompletionQueue::attach(Progressing& queue_pair) {
  const std::lock_guard guard(moving_);
  ++users;
  for (Attached& attached : attached_)
    if (attached.queue_pair == &queue_pair) {
      ++attached.times;
      return;
    }
  attached_.push_back({&queue_pair, 1});
}

void CompletionQueue::detach(Progressing& queue_pair) {
  const std::lock_guard guard(moving_);
  const auto found = std::find_if(attached_.begin(), attached_.end(), [&](const Attached& attached) {
    return attached.queue_pair == &queue_pair;
  });
  if (found == attached_.end()) return;
  --users;
  if (--found->times == 0) attached_.erase(found);
}

CompletionChannel::CompletionChannel(ibv_context& of_context) : ibv_comp_channel{&of_context, -1, 0} {
  fd = events_.descriptor();
}

}  // namespace gdrbench::softverbs
