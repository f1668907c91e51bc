#include "nic/receive_queue.hpp"

#include <algorithm>
#include <cerrno>

namespace gdrbench::softverbs {

ReceiveQueue::ReceiveQueue(int max_work, int max_segments_each)
    : max_work_(max_work), max_sge_(max_segments_each), ring_(max_work, max_segments_each) {}

std::size_t ReceiveQueue::place(std::size_t nth) const {
  const auto capacity = static_cast<std::size_t>(max_work_);
  const std::size_t at = first_ + nth;
  return at < capacity ? at : at - capacity;
}

int ReceiveQueue::post(ibv_recv_wr* list, ibv_recv_wr** bad) {
  for (ibv_recv_wr* work = list; work != nullptr; work = work->next) {
    const bool segments_fit = work->num_sge >= 0 && work->num_sge <= max_sge_;
    if (!segments_fit || count() == max_work_) {
      *bad = work;
      return segments_fit ? ENOMEM : EINVAL;
    }
    const std::size_t at = place(used_++);
    ring_.headers[at] = {work->wr_id, work->num_sge};
    std::copy_n(work->sg_list, work->num_sge, segments_of(ring_, at));
  }
  return 0;
}

bool ReceiveQueue::take(ReceiveWork& work) {
  if (empty()) return false;
  const Header& header = ring_.headers[first_];
  work.id = header.id;
  work.segments = header.segments;
  std::copy_n(segments_of(ring_, first_), header.segments, work.sg_list.begin());
  first_ = place(1);
  --used_;
  return true;
}

int ReceiveQueue::resize(int max_work) {
  if (max_work < count()) return EINVAL;
  Ring ring(max_work, max_sge_);
  for (std::size_t i = 0; i < used_; ++i) {
    const std::size_t from = place(i);
    ring.headers[i] = ring_.headers[from];
    std::copy_n(segments_of(ring_, from), max_sge_, segments_of(ring, i));
  }
  ring_ = std::move(ring);
  max_work_ = max_work;
  first_ = 0;
  return 0;
}

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
