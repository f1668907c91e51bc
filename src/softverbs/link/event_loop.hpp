#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "link/stream_socket.hpp"

namespace gdrbench::softverbs {

using Clock = std::chrono::steady_clock;

/// Descriptors that one thread waits for, and a doorbell that any process of the same user can ring.
class EventLoop {
 public:
  using Handler = std::function<void(std::uint32_t epoll_events)>;

  /// Throws std::system_error.
  EventLoop();
  EventLoop(const EventLoop&) = delete;

  /// From any thread. The handler runs on the thread that calls `wait`. Edge-triggered where `events` has
  /// EPOLLET.
  void add(int descriptor, std::uint32_t events, Handler handler);
  /// From any thread; the handler may be running a last time while this returns, unless called from it.
  void remove(int descriptor);

  /// Runs the handlers of what is ready, after at most the time until `deadline`; the doorbell ends it too.
  void wait(Clock::time_point deadline);
  /// Sleeps until `deadline` or until `interrupt` is called; descriptors and doorbell wait for the next
  /// `wait`.
  void nap(Clock::time_point deadline);

  /// Wakes `nap` and `wait`. From any thread.
  void interrupt();

  /// Around fork: `before` holds the list of descriptors still. In the child, which must not keep connections
  /// of its parent alive, they and the loop then lead nowhere; their numbers stay taken.
  void before_fork() { lock_.lock(); }
  void after_fork_in_parent() { lock_.unlock(); }
  void after_fork_in_child();

  /// The doorbell's descriptor in this process: a remote opens /proc/PID/fd/NUMBER for writing and writes a
  /// byte.
  int doorbell() const { return doorbell_read_.get(); }

 private:
  struct Entry {
    std::uint32_t generation;  ///< tells a descriptor from an earlier one of the same number
    std::shared_ptr<Handler> handler;
  };
  std::shared_ptr<Handler> find(std::uint64_t tag);

  Descriptor epoll_, doorbell_read_, doorbell_write_, interrupt_;
  std::mutex lock_;
  std::uint32_t last_generation_ = 0;
  std::unordered_map<int, Entry> entries_;
};

}  // namespace gdrbench::softverbs
