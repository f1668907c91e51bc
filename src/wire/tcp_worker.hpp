#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "wire/socket.hpp"
#include "wire/tcp_connection.hpp"

namespace gdrbench::wire {

/// Lets one thread sleep until others have something for it, by an eventfd. Telling one that is awake costs
/// no system call.
///
/// The sleeper: will_sleep(); look once more whether there is something; if not, sleep until fd() is
/// readable; is_awake(). The others: leave something where the sleeper looks, then tell().
class WakeUp {
 public:
  WakeUp();  ///< throws SystemError

  int fd() const { return event_.get(); }
  void will_sleep() { sleeps_ = true; }
  void is_awake();
  void tell();

 private:
  FileDescriptor event_;
  std::atomic<bool> sleeps_ = false;
};

/// A thread that moves some connections of a TcpWire, so that the kernel's copies of their sockets run on a
/// core of their own. It takes what the owner posts, and keeps what completes until the owner collects it. It
/// looks for more for a while before it sleeps where completions are polled for, and sleeps at once where
/// they are waited for.
class TcpWorker {
 public:
  /// `connections` and `owner`, which is told of completions, outlive it.
  TcpWorker(std::vector<TcpConnection*> connections, CompletionMode mode, WakeUp& owner);
  ~TcpWorker();
  TcpWorker(const TcpWorker&) = delete;
  TcpWorker& operator=(const TcpWorker&) = delete;

  /// Of one of its connections, with room for it reserved there. `connection` is that of the request.
  void post(TcpConnection& connection, const SendRequest& request);
  void post(TcpConnection& connection, const ReceiveRequest& request);
  /// Appends what has completed. Throws what has ended the thread (PeerLost, Error) once nothing is left.
  void collect(Ring<Completion>& into);
  /// Whether collect() has something to append or to throw.
  bool has_something() const { return has_something_; }
  std::uint64_t bytes_moved() const { return bytes_moved_.load(std::memory_order_acquire); }

 private:
  template <class Request>
  struct Posted {
    TcpConnection* connection;
    Request request;
  };

  void run() noexcept;
  void move_until_stopped();
  bool take_posts();
  bool progress();
  void hand_over();
  void sleep();

  std::vector<TcpConnection*> connections_;
  double patience_us_;  ///< between the last thing done and going to sleep
  WakeUp* owner_;
  WakeUp wake_up_;
  SocketWatch watch_;
  std::atomic<bool> stops_ = false, has_posts_ = false, has_something_ = false;
  std::atomic<std::uint64_t> bytes_moved_ = 0;

  std::mutex mutex_;  ///< of what follows
  std::vector<Posted<ReceiveRequest>> receives_;
  std::vector<Posted<SendRequest>> sends_;
  Ring<Completion> completed_;
  std::exception_ptr failure_;

  // Of the thread alone.
  std::vector<Posted<ReceiveRequest>> taken_receives_;
  std::vector<Posted<SendRequest>> taken_sends_;
  Ring<Completion> just_completed_;
  std::thread thread_;
};

}  // namespace gdrbench::wire
