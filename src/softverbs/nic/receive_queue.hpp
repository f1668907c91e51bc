#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "nic/context.hpp"
#include "nic/device.hpp"

namespace gdrbench::softverbs {

/// A posted receive.
struct ReceiveWork {
  std::uint64_t id = 0;
  int segments = 0;
  std::array<ibv_sge, max_segments> sg_list;
};

/// Receives in the order of posting. Not thread-safe.
class ReceiveQueue {
 public:
  ReceiveQueue(int max_work, int max_segments_each);

  /// As ibv_post_recv: 0, or EINVAL (too many segments), ENOMEM (full); `bad` is the first that was not
  /// taken.
  int post(ibv_recv_wr* list, ibv_recv_wr** bad);
  bool take(ReceiveWork& work);
  bool empty() const { return used_ == 0; }
  int count() const { return static_cast<int>(used_); }
  int capacity() const { return max_work_; }
  int max_sge() const { return max_sge_; }
  /// 0, or EINVAL below what is posted.
  int resize(int max_work);

 private:
  struct Header {
    std::uint64_t id;
    int segments;
  };
  struct Ring {
    Ring(int max_work, int max_segments_each)
        : headers(static_cast<std::size_t>(max_work)),
          segments(static_cast<std::size_t>(max_work) * static_cast<std::size_t>(max_segments_each)) {}
    std::vector<Header> headers;
    std::vector<ibv_sge> segments;  ///< max_sge_ for each header
  };
  std::size_t place(std::size_t nth) const;
  ibv_sge* segments_of(Ring& ring, std::size_t at) const {
    return ring.segments.data() + at * static_cast<std::size_t>(max_sge_);
  }

  int max_work_, max_sge_;
  Ring ring_;
  std::size_t first_ = 0, used_ = 0;
};

/// A shared receive queue. Thread-safe. Its `take` may be called under the lock of a queue pair.
class SharedReceiveQueue : public ibv_srq {
 public:
  /// `attributes` are within the limits of the device.
  SharedReceiveQueue(Context& of_context, ibv_pd& domain, const ibv_srq_init_attr& attributes);
  /// Waits until its events that the program has taken are acknowledged.
  ~SharedReceiveQueue();
  static SharedReceiveQueue& of(ibv_srq* srq) { return *static_cast<SharedReceiveQueue*>(srq); }

  /// As ibv_post_srq_recv. Wakes the engine if `take` found the queue empty since the last post.
  int post(ibv_recv_wr* list, ibv_recv_wr** bad);
  /// False: empty. Raises IBV_EVENT_SRQ_LIMIT_REACHED, once, when fewer than the limit remain.
  bool take(ReceiveWork& work);
  /// As ibv_modify_srq, ibv_query_srq. All of the changes are made or none.
  int modify(const ibv_srq_attr& attributes, int mask);
  void query(ibv_srq_attr& attributes);

  std::atomic<int> users{0};  ///< queue pairs; while there are any it cannot be destroyed (EBUSY)

 private:
  Context& owner_;
  std::mutex lock_;
  ReceiveQueue queue_;
  std::uint32_t limit_ = 0;
  bool waited_for_ = false;
};

}  // namespace gdrbench::softverbs
