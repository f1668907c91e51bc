#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "nic/completion_queue.hpp"
#include "nic/device.hpp"

namespace gdrbench::softverbs {
namespace {

using std::chrono::milliseconds;
using Ids = std::vector<std::uint64_t>;

ibv_wc entry_of(std::uint64_t id, ibv_wc_status status = IBV_WC_SUCCESS) {
  ibv_wc entry{};
  entry.wr_id = id;
  entry.status = status;
  return entry;
}

class Moving : public Progressing {
 public:
  explicit Moving(std::function<void()> move = [] {}) : move_(std::move(move)) {}
  void progress() override {
    ++times;
    move_();
  }
  std::atomic<int> times{0};

 private:
  std::function<void()> move_;
};

class SoftverbsCompletionQueue : public testing::Test {
 protected:
  static constexpr int places = 4;

  SoftverbsCompletionQueue() {
    fcntl(channel_.fd, F_SETFL, O_NONBLOCK);
    fcntl(context_.events().descriptor(), F_SETFL, O_NONBLOCK);
    queue_ = std::make_unique<CompletionQueue>(context_, places, &channel_, nullptr);
  }
  void push(std::uint64_t id, bool solicited = false, ibv_wc_status status = IBV_WC_SUCCESS) {
    queue_->push(entry_of(id, status), solicited);
  }
  Ids poll(int count = 100) {
    std::array<ibv_wc, 100> entries;
    const int taken = queue_->poll(count, entries.data());
    Ids ids;
    for (int i = 0; i < taken; ++i) ids.push_back(entries[static_cast<std::size_t>(i)].wr_id);
    return ids;
  }
  /// Whether there is a completion event; takes and acknowledges it.
  bool notified() {
    ibv_cq* from = nullptr;
    if (channel_.events().take(from) != 0) return false;
    EXPECT_EQ(from, queue_->abi());
    channel_.events().acknowledge(from, 1);
    return true;
  }
  bool told_of_overrun() {
    ibv_async_event event{};
    if (context_.events().take(event) != 0) return false;
    EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
    EXPECT_EQ(event.element.cq, queue_->abi());
    context_.events().acknowledge(event.element.cq, 1);
    return true;
  }

  ibv_device device_{};
  Context context_{device_};
  CompletionChannel channel_{context_.context};
  std::unique_ptr<CompletionQueue> queue_;
};

TEST_F(SoftverbsCompletionQueue, GivesEntriesInOrderAroundItsEnd) {
  for (std::uint64_t i = 0; i < 20; i += 3) {
    for (std::uint64_t id = i; id < i + 3; ++id) push(id);
    EXPECT_EQ(poll(), (Ids{i, i + 1, i + 2}));
  }
  EXPECT_FALSE(queue_->overrun());
}

TEST_F(SoftverbsCompletionQueue, GivesNoMoreThanAskedFor) {
  for (std::uint64_t id = 0; id < 4; ++id) push(id);
  EXPECT_EQ(poll(0), Ids{});
  EXPECT_EQ(poll(-1), Ids{});
  EXPECT_EQ(poll(1), Ids{0});
  EXPECT_EQ(poll(2), (Ids{1, 2}));
  EXPECT_EQ(poll(9), Ids{3});
}

TEST_F(SoftverbsCompletionQueue, AnEmptyPollMovesEachQueuePairOnceAndGivesWhatThatBrings) {
  Moving both([this] { push(7); }), other;
  queue_->attach(both);
  queue_->attach(both);  // as sender and receiver
  queue_->attach(other);
  EXPECT_EQ(poll(), Ids{7});
  EXPECT_EQ(both.times, 1);
  EXPECT_EQ(other.times, 1);
}

TEST_F(SoftverbsCompletionQueue, APollThatFindsEntriesMovesNothing) {
  Moving pair;
  queue_->attach(pair);
  push(1);
  EXPECT_EQ(poll(), Ids{1});
  EXPECT_EQ(pair.times, 0);
}

TEST_F(SoftverbsCompletionQueue, IsInUseUntilEveryAttachmentHasEnded) {
  Moving pair;
  queue_->attach(pair);
  queue_->attach(pair);
  EXPECT_EQ(queue_->users, 2);
  queue_->detach(pair);
  EXPECT_EQ(queue_->users, 1);
  poll();
  EXPECT_EQ(pair.times, 1);
  queue_->detach(pair);
  EXPECT_EQ(queue_->users, 0);
  poll();
  EXPECT_EQ(pair.times, 1);
}

TEST_F(SoftverbsCompletionQueue, APollDoesNotWaitForAnotherThatMoves) {
  std::atomic<bool> moving{false}, go_on{false};
  Moving pair([&] {
    moving = true;
    while (!go_on) std::this_thread::yield();
  });
  queue_->attach(pair);
  std::thread other([&] { poll(); });
  while (!moving) std::this_thread::yield();
  EXPECT_EQ(poll(), Ids{});
  EXPECT_EQ(pair.times, 1);
  go_on = true;
  other.join();
}

TEST_F(SoftverbsCompletionQueue, DetachingWaitsForAPollThatIsMovingTheQueuePair) {
  std::atomic<bool> moving{false}, go_on{false}, detached{false};
  Moving pair([&] {
    moving = true;
    while (!go_on) std::this_thread::yield();
    EXPECT_FALSE(detached);
  });
  queue_->attach(pair);
  std::thread poller([&] { poll(); });
  while (!moving) std::this_thread::yield();
  std::thread destroyer([&] {
    queue_->detach(pair);
    detached = true;
  });
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_FALSE(detached);
  go_on = true;
  poller.join();
  destroyer.join();
}

TEST_F(SoftverbsCompletionQueue, NotifiesOnceOfTheNextEntryAfterTheRequest) {
  push(0);
  queue_->request_notification(false);
  EXPECT_FALSE(notified());  // what was there before does not count
  push(1);
  push(2);
  EXPECT_TRUE(notified());
  EXPECT_FALSE(notified());
}

TEST_F(SoftverbsCompletionQueue, WithoutARequestThereIsNoNotification) {
  push(0, true);
  EXPECT_FALSE(notified());
}

TEST_F(SoftverbsCompletionQueue, ARequestForSolicitedEntriesWaitsForOneOrAFailure) {
  queue_->request_notification(true);
  push(0);
  EXPECT_FALSE(notified());
  push(1, true);
  EXPECT_TRUE(notified());
  queue_->request_notification(true);
  push(2, false, IBV_WC_WR_FLUSH_ERR);
  EXPECT_TRUE(notified());
}

TEST_F(SoftverbsCompletionQueue, ARequestForAnyEntryStandsAlsoWhenSolicitedOnesAreAskedForLater) {
  queue_->request_notification(false);
  queue_->request_notification(true);
  push(0);
  EXPECT_TRUE(notified());
}

TEST_F(SoftverbsCompletionQueue, AnOverrunIsToldOnceAndKeepsTheEntriesBefore) {
  for (std::uint64_t id = 0; id < places; ++id) push(id);
  EXPECT_FALSE(queue_->overrun());
  push(100);
  EXPECT_TRUE(queue_->overrun());
  push(101);
  EXPECT_TRUE(told_of_overrun());
  EXPECT_FALSE(told_of_overrun());
  EXPECT_EQ(poll(), (Ids{0, 1, 2, 3}));
  push(102);
  EXPECT_EQ(poll(), Ids{});
}

TEST_F(SoftverbsCompletionQueue, ResizingKeepsEntriesAndOrder) {
  for (std::uint64_t id = 0; id < 3; ++id) push(id);
  EXPECT_EQ(poll(2), (Ids{0, 1}));
  for (std::uint64_t id = 3; id < 6; ++id) push(id);  // around the end: full
  ASSERT_EQ(queue_->resize(6), 0);
  EXPECT_EQ(queue_->cqe, 6);
  push(6);
  push(7);
  EXPECT_FALSE(queue_->overrun());
  EXPECT_EQ(poll(), (Ids{2, 3, 4, 5, 6, 7}));
}

TEST_F(SoftverbsCompletionQueue, RefusesASizeBelowWhatIsUsedOrOutOfRange) {
  for (std::uint64_t id = 0; id < 3; ++id) push(id);
  for (const int entries : {2, 0, -1, max_completions + 1})
    EXPECT_EQ(queue_->resize(entries), EINVAL) << entries;
  EXPECT_EQ(queue_->cqe, places);
  EXPECT_EQ(queue_->resize(3), 0);
  EXPECT_EQ(poll(), (Ids{0, 1, 2}));
}

TEST_F(SoftverbsCompletionQueue, ExtendedPollingGivesOneEntryAfterTheOther) {
  EXPECT_EQ(queue_->start_poll(), ENOENT);  // and end_poll is not to be called
  push(1);
  push(2);
  ASSERT_EQ(queue_->start_poll(), 0);
  EXPECT_EQ(queue_->current().wr_id, 1U);
  ASSERT_EQ(queue_->next_poll(), 0);
  EXPECT_EQ(queue_->current().wr_id, 2U);
  EXPECT_EQ(queue_->next_poll(), ENOENT);
  queue_->end_poll();
  EXPECT_EQ(poll(), Ids{});
}

TEST_F(SoftverbsCompletionQueue, EntriesCanBeAddedBetweenStartAndEndOfExtendedPolling) {
  push(1);
  ASSERT_EQ(queue_->start_poll(), 0);
  push(2);
  ASSERT_EQ(queue_->next_poll(), 0);
  EXPECT_EQ(queue_->current().wr_id, 2U);
  queue_->end_poll();
}

TEST_F(SoftverbsCompletionQueue, ExtendedPollingByAnotherThreadWaitsForTheEnd) {
  push(1);
  push(2);
  ASSERT_EQ(queue_->start_poll(), 0);
  std::atomic<bool> started{false};
  std::thread other([&] {
    EXPECT_EQ(queue_->start_poll(), 0);
    started = true;
    EXPECT_EQ(queue_->current().wr_id, 2U);
    queue_->end_poll();
  });
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_FALSE(started);
  EXPECT_EQ(queue_->current().wr_id, 1U);
  queue_->end_poll();
  other.join();
}

TEST_F(SoftverbsCompletionQueue, ItsEndTakesBackEventsThatNobodyTook) {
  queue_->request_notification(false);
  for (std::uint64_t id = 0; id <= places; ++id) push(id);
  queue_.reset();
  EXPECT_FALSE(notified());
  EXPECT_FALSE(told_of_overrun());
}

TEST_F(SoftverbsCompletionQueue, ItsEndWaitsUntilTakenEventsAreAcknowledged) {
  queue_->request_notification(false);
  push(0);
  ibv_cq* from = nullptr;
  ASSERT_EQ(channel_.events().take(from), 0);
  std::atomic<bool> ended{false};
  std::thread destroyer([&] {
    queue_.reset();
    ended = true;
  });
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_FALSE(ended);
  channel_.events().acknowledge(from, 1);
  destroyer.join();
}

TEST_F(SoftverbsCompletionQueue, EveryEntryIsTakenOnceByThreadsThatPollTogether) {
  constexpr std::uint64_t entries = 20'000;
  ASSERT_EQ(queue_->resize(1000), 0);
  std::uint64_t next = 0;
  std::atomic<std::uint64_t> taken{0}, sum{0};
  Moving pair([&] {  // by one thread at a time
    for (int i = 0; i < 100 && next < entries; ++i) push(next++);
  });
  queue_->attach(pair);
  const auto take_all = [&] {
    while (taken < entries) {
      const Ids ids = poll(32);
      for (const std::uint64_t id : ids) sum += id;
      taken += ids.size();
    }
  };
  std::thread other(take_all);
  take_all();
  other.join();
  EXPECT_EQ(taken, entries);
  EXPECT_EQ(sum, entries * (entries - 1) / 2);
  EXPECT_FALSE(queue_->overrun());
}

}  // namespace
}  // namespace gdrbench::softverbs
