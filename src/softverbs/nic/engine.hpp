#pragma once

#include <atomic>
#include <cstddef>
#include <thread>

#include "link/handshake.hpp"

namespace gdrbench::softverbs {

class Nic;

/// The thread that works when the program does not: it moves every queue pair, accepts and makes connections,
/// keeps the timers. While threads that poll completion queues do all the work it stands back and only looks
/// in now and then; when nothing is under way it sleeps until a remote rings.
class Engine {
 public:
  /// Claims the process's port. Throws std::system_error, std::invalid_argument.
  explicit Engine(Nic& of_nic);
  ~Engine();

  /// Once the rest of the NIC is there.
  void start();
  void stop();

  std::uint32_t slot() const { return slot_; }
  EventLoop& loop() { return loop_; }
  Dialer& dialer() { return dialer_; }

  /// A polling thread has handled so many frames.
  void count_polled(std::size_t frames) { polled_.fetch_add(frames, std::memory_order_relaxed); }
  /// Makes it look at every queue pair soon.
  void wake();
  /// Makes it look again by then, if it would not.
  void wake_by(Clock::time_point when) {
    if (when == Clock::time_point::max()) return;
    const Clock::time_point until = sleeps_until_;
    if (until == awake || when < until) loop_.interrupt();
  }
  /// Makes it stop relying on polling threads.
  void take_over() {
    asked_ = true;
    if (standing_back_) loop_.interrupt();
  }

 private:
  struct Pass {
    std::size_t frames = 0;
    bool more = false;
    Clock::time_point wake_at = Clock::time_point::max();
  };
  Engine(Nic& of_nic, ListeningSlot listening);
  void run();
  Pass pass();
  bool arm();
  void disarm();
  void on_connection_request(ConnectionRequest request);

  Nic& nic_;
  std::uint32_t slot_;
  EventLoop loop_;
  Dialer dialer_;
  Listener listener_;
  std::thread thread_;
  std::atomic<bool> stop_{false};
  static constexpr Clock::time_point awake = Clock::time_point::min();
  std::atomic<Clock::time_point> sleeps_until_{awake};
  std::atomic<bool> standing_back_{false};
  std::atomic<bool> asked_{false};  ///< to take over
  std::atomic<std::size_t> polled_{0};
};

}  // namespace gdrbench::softverbs
