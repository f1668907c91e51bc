#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "link/hello.hpp"
#include "link/link.hpp"

namespace gdrbench::softverbs {

/// A port of the range that queue-pair numbers are made of: the QPN's upper bits name the port that its
/// process listens on, so a peer that knows GID and QPN knows where to connect, and the port number is
/// claimed once a host (a network namespace) without any daemon. QPN = slot × 4096 + index.
constexpr std::uint32_t queue_pair_index_bits = 12;
constexpr std::uint32_t slots = 1U << 12;
constexpr std::uint16_t default_first_port = 20480;  ///< …24575: below the ephemeral ports of Linux

/// GDRBENCH_SOFTVERBS_PORT, else the default; the same on both ends. Throws std::invalid_argument naming the
/// value.
std::uint16_t first_port();

constexpr std::uint32_t slot_of(std::uint32_t qpn) {
  return qpn >> queue_pair_index_bits;
}

/// Address of the process of a queue pair. `scope_id` is for link-local addresses.
sockaddr_in6 address_of(const ibv_gid& gid, std::uint32_t slot, std::uint32_t scope_id);

/// A listening socket on the first free port of the range.
struct ListeningSlot {
  Descriptor socket;
  std::uint32_t slot = 0;
};
/// Throws std::system_error when the whole range is taken.
ListeningSlot claim_slot();

/// A peer that asks to be connected and waits for the answer.
class Caller {
 public:
  Caller(EventLoop& loop, Descriptor socket, const Hello& hello)
      : loop_(&loop), socket_(std::move(socket)), hello_(hello) {}
  Caller(Caller&&) noexcept = default;
  Caller& operator=(Caller&&) noexcept = default;
  /// Unanswered: the peer sees the connection close.
  ~Caller() = default;

  const Hello& hello() const { return hello_; }
  /// The established link; null when the caller has hung up or a descriptor is lacking.
  std::unique_ptr<Link> accept();
  void refuse(Refusal reason);

 private:
  EventLoop* loop_;
  Descriptor socket_;
  Hello hello_;
};

/// Accepts connections on the loop's thread, reads their Hello (within 5 s; at most 256 at a time) and passes
/// on those that are well formed; refuses and closes the others.
class Listener {
 public:
  Listener(EventLoop& loop, Descriptor socket, std::function<void(Caller)> on_caller);
  ~Listener();
  /// Ends what has waited too long; call now and then on the loop's thread.
  void expire(Clock::time_point now);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct DialResult {
  std::unique_ptr<Link> link;       ///< null: see the rest
  Refusal refusal = Refusal::none;  ///< the peer's answer
  std::string error;                ///< a socket error, in words with its name
};

/// Connects to other processes on the loop's thread.
class Dialer {
 public:
  using Done = std::function<void(DialResult)>;
  /// Throws std::system_error.
  explicit Dialer(EventLoop& loop);
  /// What is under way is given up; nothing is told any more.
  ~Dialer();

  /// From any thread. `done` runs on the loop's thread, once, at the latest at `deadline`. `source` is the
  /// address to connect from (port ignored). Locality and rings of `hello` are filled in here.
  void dial(const Hello& hello, const sockaddr_in6& source, const sockaddr_in6& destination,
            Clock::time_point deadline, Done done);
  void expire(Clock::time_point now);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gdrbench::softverbs
