#include <cerrno>

#include "nic/receive_queue.hpp"

namespace gdrbench::softverbs {

SharedReceiveQueue::SharedReceiveQueue(Context& of_context, ibv_pd& domain,
                                       const ibv_srq_init_attr& attributes)
    : ibv_srq{},
      owner_(of_context),
      queue_(static_cast<int>(attributes.attr.max_wr), static_cast<int>(attributes.attr.max_sge)) {
  context = &of_context.context;
  srq_context = attributes.srq_context;
  pd = &domain;
  pthread_mutex_init(&mutex, nullptr);
  pthread_cond_init(&cond, nullptr);
}

SharedReceiveQueue::~SharedReceiveQueue() {
  owner_.events().forget(static_cast<ibv_srq*>(this));
  pthread_cond_destroy(&cond);
  pthread_mutex_destroy(&mutex);
}

int SharedReceiveQueue::post(ibv_recv_wr* list, ibv_recv_wr** bad) {
  std::unique_lock guard(lock_);
  const int error = queue_.post(list, bad);
  const bool wake = waited_for_ && !queue_.empty();
  if (wake) waited_for_ = false;
  guard.unlock();
  if (wake) owner_.nic().wake();
  return error;
}

bool SharedReceiveQueue::take(ReceiveWork& work) {
  std::unique_lock guard(lock_);
  if (!queue_.take(work)) {
    waited_for_ = true;
    return false;
  }
  const bool limit_reached = static_cast<std::uint32_t>(queue_.count()) < limit_;
  if (!limit_reached) return true;
  limit_ = 0;
  guard.unlock();
  ibv_async_event event{};
  event.element.srq = this;
  event.event_type = IBV_EVENT_SRQ_LIMIT_REACHED;
  owner_.events().raise(event.element.srq, event);
  return true;
}

int SharedReceiveQueue::modify(const ibv_srq_attr& attributes, int mask) {
  if ((mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0) return EINVAL;
  const std::lock_guard guard(lock_);
  const bool resizes = (mask & IBV_SRQ_MAX_WR) != 0;
  const bool limits = (mask & IBV_SRQ_LIMIT) != 0;
  if (resizes && (attributes.max_wr < 1 || attributes.max_wr > max_work_requests)) return EINVAL;
  const std::uint32_t capacity = resizes ? attributes.max_wr : static_cast<std::uint32_t>(queue_.capacity());
  const std::uint32_t limit = limits ? attributes.srq_limit : limit_;
  if (limit > capacity) return EINVAL;
  if (resizes)
    if (const int error = queue_.resize(static_cast<int>(capacity))) return error;
  limit_ = limit;
  return 0;
}

void SharedReceiveQueue::query(ibv_srq_attr& attributes) {
  const std::lock_guard guard(lock_);
  attributes.max_wr = static_cast<std::uint32_t>(queue_.capacity());
  attributes.max_sge = static_cast<std::uint32_t>(queue_.max_sge());
  attributes.srq_limit = limit_;
}

}  // namespace gdrbench::softverbs
