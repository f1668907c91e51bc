#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <memory>
#include <vector>

#include "nic/receive_queue.hpp"

namespace gdrbench::softverbs {
namespace {

/// Work requests `first` … `first + count − 1` in a list, each of one segment at an address of its number.
class Requests {
 public:
  Requests(std::uint64_t first, std::size_t count) : segments_(count), works_(count) {
    for (std::size_t i = 0; i < count; ++i) {
      segments_[i] = {first + i, 8, 1};
      works_[i] = {first + i, i + 1 < count ? &works_[i + 1] : nullptr, &segments_[i], 1};
    }
  }
  ibv_recv_wr& operator[](std::size_t place) { return works_[place]; }
  ibv_recv_wr* list() { return works_.data(); }

 private:
  std::vector<ibv_sge> segments_;
  std::vector<ibv_recv_wr> works_;
};

template <class Queue>
std::vector<std::uint64_t> drain(Queue& queue) {
  std::vector<std::uint64_t> ids;
  for (ReceiveWork work; queue.take(work);) {
    ids.push_back(work.id);
    EXPECT_EQ(work.segments, 1);
    EXPECT_EQ(work.sg_list[0].addr, work.id);
  }
  return ids;
}

using Ids = std::vector<std::uint64_t>;

TEST(SoftverbsReceiveQueue, GivesReceivesInTheOrderOfPosting) {
  ReceiveQueue queue(3, 1);
  ibv_recv_wr* bad = nullptr;
  ReceiveWork work;
  for (std::uint64_t round = 0; round < 5; ++round) {  // around the end of the ring
    Requests requests(round * 10, 2);
    ASSERT_EQ(queue.post(requests.list(), &bad), 0);
    EXPECT_EQ(drain(queue), (Ids{round * 10, round * 10 + 1}));
  }
  EXPECT_FALSE(queue.take(work));
}

TEST(SoftverbsReceiveQueue, KeepsEverySegmentOfAList) {
  ReceiveQueue queue(2, 3);
  std::array<ibv_sge, 3> segments{{{1, 10, 100}, {2, 20, 200}, {3, 30, 300}}};
  ibv_recv_wr second{2, nullptr, segments.data(), 3}, first{1, &second, nullptr, 0};
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(queue.post(&first, &bad), 0);
  ReceiveWork work;
  ASSERT_TRUE(queue.take(work));
  EXPECT_EQ(work.segments, 0);
  ASSERT_TRUE(queue.take(work));
  ASSERT_EQ(work.segments, 3);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(work.sg_list[i].addr, segments[i].addr);
    EXPECT_EQ(work.sg_list[i].length, segments[i].length);
    EXPECT_EQ(work.sg_list[i].lkey, segments[i].lkey);
  }
}

TEST(SoftverbsReceiveQueue, IsFullAtItsCapacityAndNamesTheFirstThatDoesNotFit) {
  ReceiveQueue queue(3, 1);
  Requests requests(0, 5);
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(queue.post(requests.list(), &bad), ENOMEM);
  EXPECT_EQ(bad, &requests[3]);
  EXPECT_EQ(queue.count(), 3);
  EXPECT_EQ(drain(queue), (Ids{0, 1, 2}));
}

TEST(SoftverbsReceiveQueue, RefusesTooManySegmentsAndKeepsWhatCameBefore) {
  ReceiveQueue queue(8, 1);
  for (const int segments : {2, -1}) {
    Requests requests(0, 3);
    requests[1].num_sge = segments;
    ibv_recv_wr* bad = nullptr;
    EXPECT_EQ(queue.post(requests.list(), &bad), EINVAL);
    EXPECT_EQ(bad, &requests[1]);
    EXPECT_EQ(drain(queue), Ids{0});
  }
}

TEST(SoftverbsReceiveQueue, OfNoCapacityTakesNothing) {
  ReceiveQueue queue(0, 0);
  Requests requests(0, 1);
  requests[0].num_sge = 0;
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(queue.post(requests.list(), &bad), ENOMEM);
  EXPECT_TRUE(queue.empty());
}

TEST(SoftverbsReceiveQueue, ResizingKeepsWhatIsPosted) {
  ReceiveQueue queue(4, 1);
  Requests requests(0, 4), more(4, 3);
  ibv_recv_wr* bad = nullptr;
  ReceiveWork work;
  ASSERT_EQ(queue.post(requests.list(), &bad), 0);
  ASSERT_TRUE(queue.take(work));
  ASSERT_TRUE(queue.take(work));
  ASSERT_TRUE(queue.take(work));
  ASSERT_EQ(queue.post(more.list(), &bad), 0);  // wraps around
  EXPECT_EQ(queue.resize(3), EINVAL);
  EXPECT_EQ(queue.capacity(), 4);
  ASSERT_EQ(queue.resize(6), 0);
  EXPECT_EQ(queue.capacity(), 6);
  Requests last(7, 2);
  ASSERT_EQ(queue.post(last.list(), &bad), 0);
  EXPECT_EQ(drain(queue), (Ids{3, 4, 5, 6, 7, 8}));
}

class SoftverbsSharedReceiveQueue : public testing::Test {
 protected:
  SoftverbsSharedReceiveQueue() {
    domain_.context = &context_.context;
    fcntl(context_.events().descriptor(), F_SETFL, O_NONBLOCK);
    ibv_srq_init_attr attributes{};
    attributes.attr = {.max_wr = 8, .max_sge = 1, .srq_limit = 0};
    queue_ = std::make_unique<SharedReceiveQueue>(context_, domain_, attributes);
  }
  void post(std::uint64_t first, std::size_t count) {
    Requests requests(first, count);
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(queue_->post(requests.list(), &bad), 0);
  }
  void take(int count) {
    ReceiveWork work;
    for (int i = 0; i < count; ++i) ASSERT_TRUE(queue_->take(work));
  }
  int modify(std::uint32_t max_wr, std::uint32_t limit, int mask) {
    return queue_->modify({.max_wr = max_wr, .max_sge = 0, .srq_limit = limit}, mask);
  }
  ibv_srq_attr query() {
    ibv_srq_attr attributes{};
    queue_->query(attributes);
    return attributes;
  }
  /// Whether the limit event is there; takes and acknowledges it.
  bool limit_reached() {
    ibv_async_event event{};
    if (context_.events().take(event) != 0) return false;
    EXPECT_EQ(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
    EXPECT_EQ(event.element.srq, queue_.get());
    context_.events().acknowledge(event.element.srq, 1);
    return true;
  }

  ibv_device device_{};
  Context context_{device_};
  ibv_pd domain_{};
  std::unique_ptr<SharedReceiveQueue> queue_;
};

TEST_F(SoftverbsSharedReceiveQueue, TellsOnceThatFewerThanTheLimitRemain) {
  post(0, 5);
  ASSERT_EQ(modify(0, 3, IBV_SRQ_LIMIT), 0);
  EXPECT_EQ(query().srq_limit, 3U);
  take(2);
  EXPECT_FALSE(limit_reached());  // three remain
  take(1);
  EXPECT_TRUE(limit_reached());
  EXPECT_EQ(query().srq_limit, 0U);
  take(1);
  EXPECT_FALSE(limit_reached());
  ASSERT_EQ(modify(0, 1, IBV_SRQ_LIMIT), 0);
  take(1);
  EXPECT_TRUE(limit_reached());
}

TEST_F(SoftverbsSharedReceiveQueue, WithoutALimitNeverTells) {
  post(0, 2);
  take(2);
  EXPECT_FALSE(limit_reached());
}

TEST_F(SoftverbsSharedReceiveQueue, ChangesAllThatIsAskedForOrNothing) {
  EXPECT_EQ(modify(16, 17, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
  EXPECT_EQ(query().max_wr, 8U);
  EXPECT_EQ(modify(16, 9, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
  EXPECT_EQ(query().max_wr, 16U);
  EXPECT_EQ(query().srq_limit, 9U);
}

TEST_F(SoftverbsSharedReceiveQueue, RefusesChangesThatAreOutOfRange) {
  post(0, 4);
  EXPECT_EQ(modify(3, 0, IBV_SRQ_MAX_WR), EINVAL);
  EXPECT_EQ(modify(0, 0, IBV_SRQ_MAX_WR), EINVAL);
  EXPECT_EQ(modify(max_work_requests + 1, 0, IBV_SRQ_MAX_WR), EINVAL);
  EXPECT_EQ(modify(0, 9, IBV_SRQ_LIMIT), EINVAL);
  EXPECT_EQ(modify(8, 0, IBV_SRQ_MAX_WR | 1 << 7), EINVAL);
  EXPECT_EQ(query().max_wr, 8U);
  EXPECT_EQ(drain(*queue_), (Ids{0, 1, 2, 3}));
}

TEST_F(SoftverbsSharedReceiveQueue, ItsEndTakesBackEventsThatNobodyTook) {
  post(0, 1);
  ASSERT_EQ(modify(0, 1, IBV_SRQ_LIMIT), 0);
  take(1);
  queue_.reset();
  EXPECT_FALSE(limit_reached());
}

}  // namespace
}  // namespace gdrbench::softverbs
