#include "wire/tcp_worker.hpp"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/system.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::wire {

WakeUp::WakeUp() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_) throw SystemError(errno, "eventfd");
}

void WakeUp::is_awake() {
  sleeps_ = false;
  // Always: who told may write only after this, and that must not keep the next sleep from being one for
  // ever.
  std::uint64_t times = 0;
  [[maybe_unused]] const ssize_t taken = read(event_.get(), &times, sizeof times);
}

void WakeUp::tell() {
  if (!sleeps_.exchange(false)) return;
  const std::uint64_t once = 1;
  [[maybe_unused]] const ssize_t told = write(event_.get(), &once, sizeof once);
}

namespace {

// About what falling asleep and being woken costs.
constexpr double polling_patience_us = 50;

}  // namespace

TcpWorker::TcpWorker(std::vector<TcpConnection*> connections, CompletionMode mode, WakeUp& owner)
    : connections_(std::move(connections)),
      patience_us_(mode == CompletionMode::poll ? polling_patience_us : 0),
      owner_(&owner),
      watch_({connections_.begin(), connections_.end()}) {
  const HeldSignals held(HeldSignals::Which::all);  // they are for the thread that measures
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "gdrbench-tcp");
}

TcpWorker::~TcpWorker() {
  stops_ = true;
  wake_up_.tell();
  thread_.join();
}

void TcpWorker::post(TcpConnection& connection, const SendRequest& request) {
  {
    const std::lock_guard lock(mutex_);
    sends_.push_back({&connection, request});
    has_posts_ = true;
  }
  wake_up_.tell();
}

void TcpWorker::post(TcpConnection& connection, const ReceiveRequest& request) {
  {
    const std::lock_guard lock(mutex_);
    receives_.push_back({&connection, request});
    has_posts_ = true;
  }
  wake_up_.tell();
}

void TcpWorker::collect(Ring<Completion>& into) {
  if (!has_something_) return;
  const std::lock_guard lock(mutex_);
  if (completed_.empty() && failure_) std::rethrow_exception(failure_);
  into.take_all(completed_);
  has_something_ = failure_ != nullptr;
}

void TcpWorker::run() noexcept {
  try {
    move_until_stopped();
  } catch (...) {
    hand_over();
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    has_something_ = true;
  }
  owner_->tell();
}

void TcpWorker::move_until_stopped() {
  double idle_since_us = now_us();
  while (!stops_) {
    bool moved = take_posts();
    moved |= progress();
    if (!just_completed_.empty()) hand_over();
    if (moved) {
      idle_since_us = now_us();
    } else if (now_us() - idle_since_us >= patience_us_) {
      sleep();
      idle_since_us = now_us();
    }
  }
}

bool TcpWorker::take_posts() {
  if (!has_posts_) return false;
  {
    const std::lock_guard lock(mutex_);
    taken_receives_.swap(receives_);
    taken_sends_.swap(sends_);
    has_posts_ = false;
  }
  for (const auto& [connection, request] : taken_receives_) connection->post_receive(request);
  for (const auto& [connection, request] : taken_sends_) connection->post_send(request, just_completed_);
  taken_receives_.clear();
  taken_sends_.clear();
  return true;
}

bool TcpWorker::progress() {
  std::uint64_t bytes = 0;
  for (TcpConnection* const connection : connections_) {
    connection->progress(just_completed_);
    bytes += connection->bytes_moved();
  }
  if (bytes == bytes_moved_) return false;
  bytes_moved_.store(bytes, std::memory_order_release);
  return true;
}

void TcpWorker::hand_over() {
  {
    const std::lock_guard lock(mutex_);
    completed_.take_all(just_completed_);
    has_something_ = true;
  }
  owner_->tell();
}

void TcpWorker::sleep() {
  wake_up_.will_sleep();
  if (!has_posts_ && !stops_) watch_.wait(wake_up_.fd(), -1);
  wake_up_.is_awake();
}

}  // namespace gdrbench::wire
