#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include "nic/event_queue.hpp"

namespace gdrbench::softverbs {
namespace {

using std::chrono::milliseconds;

class SoftverbsEventQueue : public testing::Test {
 protected:
  bool readable() {
    pollfd waited{queue_.descriptor(), POLLIN, 0};
    return poll(&waited, 1, 0) == 1;
  }
  void do_not_block() { fcntl(queue_.descriptor(), F_SETFL, O_NONBLOCK); }
  ibv_cq* take() {
    ibv_cq* event = nullptr;
    EXPECT_EQ(queue_.take(event), 0);
    return event;
  }

  EventQueue<ibv_cq*> queue_;
  ibv_cq first_{}, second_{};
};

TEST_F(SoftverbsEventQueue, GivesEventsInTheOrderOfRaising) {
  queue_.raise(&first_, &first_);
  queue_.raise(&second_, &second_);
  queue_.raise(&first_, &first_);
  EXPECT_EQ(take(), &first_);
  EXPECT_EQ(take(), &second_);
  EXPECT_EQ(take(), &first_);
}

TEST_F(SoftverbsEventQueue, ItsDescriptorIsReadableExactlyWhileAnEventWaits) {
  EXPECT_FALSE(readable());
  queue_.raise(&first_, &first_);
  queue_.raise(&first_, &first_);
  EXPECT_TRUE(readable());
  take();
  EXPECT_TRUE(readable());
  take();
  EXPECT_FALSE(readable());
}

TEST_F(SoftverbsEventQueue, DoesNotBlockWhereTheDescriptorDoesNot) {
  do_not_block();
  ibv_cq* event = nullptr;
  EXPECT_EQ(queue_.take(event), EAGAIN);
  queue_.raise(&first_, &first_);
  EXPECT_EQ(queue_.take(event), 0);
  EXPECT_EQ(event, &first_);
}

TEST_F(SoftverbsEventQueue, BlocksUntilAnEventIsRaised) {
  std::atomic<bool> raised{false};
  std::thread raiser([&] {
    std::this_thread::sleep_for(milliseconds(50));
    raised = true;
    queue_.raise(&second_, &second_);
  });
  EXPECT_EQ(take(), &second_);
  EXPECT_TRUE(raised);
  raiser.join();
}

TEST_F(SoftverbsEventQueue, ASignalEndsTheWaitWithEintr) {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) {};
  sigaction(SIGUSR1, &action, &before);
  std::atomic<int> result{-1};
  std::thread waiter([&] {
    ibv_cq* event = nullptr;
    result = queue_.take(event);
  });
  // Again and again: the first may come before the wait.
  while (result == -1) {
    pthread_kill(waiter.native_handle(), SIGUSR1);
    std::this_thread::sleep_for(milliseconds(5));
  }
  waiter.join();
  sigaction(SIGUSR1, &before, nullptr);
  EXPECT_EQ(result, EINTR);
}

TEST_F(SoftverbsEventQueue, AThreadThatIsCancelledWhileItWaitsTakesNothing) {
  pthread_t waiter{};
  const auto wait = [](void* queue) -> void* {
    ibv_cq* event = nullptr;
    static_cast<EventQueue<ibv_cq*>*>(queue)->take(event);
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&waiter, nullptr, wait, &queue_), 0);
  std::this_thread::sleep_for(milliseconds(20));
  pthread_cancel(waiter);
  void* ended = nullptr;
  pthread_join(waiter, &ended);
  EXPECT_EQ(ended, PTHREAD_CANCELED);
  queue_.raise(&first_, &first_);
  EXPECT_TRUE(readable());
  EXPECT_EQ(take(), &first_);
}

TEST_F(SoftverbsEventQueue, ForgetsWhatNobodyTookOfThatOwnerOnly) {
  queue_.raise(&first_, &first_);
  queue_.raise(&second_, &second_);
  queue_.raise(&first_, &first_);
  queue_.forget(&first_);
  EXPECT_TRUE(readable());
  EXPECT_EQ(take(), &second_);
  EXPECT_FALSE(readable());
}

TEST_F(SoftverbsEventQueue, ForgettingWaitsUntilAllThatWereTakenAreAcknowledged) {
  for (int i = 0; i < 3; ++i) queue_.raise(&first_, &first_);
  for (int i = 0; i < 3; ++i) take();
  std::atomic<bool> forgotten{false};
  std::thread destroyer([&] {
    queue_.forget(&first_);
    forgotten = true;
  });
  queue_.acknowledge(&first_, 2);
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_FALSE(forgotten);
  queue_.acknowledge(&first_, 1);
  destroyer.join();
  EXPECT_TRUE(forgotten);
}

TEST_F(SoftverbsEventQueue, TheEventsOfAnotherOwnerAreNoReasonToWait) {
  queue_.raise(&first_, &first_);
  take();
  queue_.forget(&second_);
  queue_.acknowledge(&first_, 1);
}

TEST_F(SoftverbsEventQueue, EachEventGoesToOneOfManyThreads) {
  constexpr int events = 2000;
  do_not_block();
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      for (ibv_cq* event = nullptr; taken < events;)
        if (queue_.take(event) == 0) {
          ++taken;
          queue_.acknowledge(event, 1);
        }
    });
  for (int i = 0; i < events; ++i) queue_.raise(&first_, &first_);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, events);
  EXPECT_FALSE(readable());
  queue_.forget(&first_);
}

}  // namespace
}  // namespace gdrbench::softverbs
