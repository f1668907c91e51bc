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

}  // namespace gdrbench::softverbs
