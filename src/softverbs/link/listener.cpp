#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <unordered_map>

#include "link/handshake.hpp"
#include "link/stream_socket.hpp"

namespace gdrbench::softverbs {

/// A connection whose Hello has not come as a whole.
struct PendingConnection {
  Descriptor socket;
  Clock::time_point deadline;
  std::array<std::byte, sizeof(Hello)> bytes;
  std::size_t have = 0;
};

namespace {

constexpr auto hello_timeout = std::chrono::seconds(5);
constexpr std::size_t max_pending = 256;
constexpr int accepted_at_once = 64;

bool begins_like_a_hello(const PendingConnection& pending) {
  const std::size_t compared = std::min(pending.have, hello_magic.size());
  return std::memcmp(pending.bytes.data(), hello_magic.data(), compared) == 0;
}

}  // namespace

struct Listener::Impl {
  Impl(EventLoop& of, Descriptor listening, std::function<void(ConnectionRequest)> callback)
      : loop(of), socket(std::move(listening)), on_connection_request(std::move(callback)) {
    resume();
  }

  ~Impl() {
    loop.remove(socket.get());
    for (const auto& [number, unused] : pending) loop.remove(number);
  }

  void resume() {
    loop.add(socket.get(), EPOLLIN, [this](std::uint32_t) { accept_some(); });
    paused = false;
  }

  void pause() {
    loop.remove(socket.get());
    paused = true;
  }

  void accept_some() {
    for (int i = 0; i < accepted_at_once; ++i) {
      Descriptor accepted(accept4(socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (accepted) {
        take(std::move(accepted));
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return;
      } else if (errno != EINTR && errno != ECONNABORTED) {
        // Descriptors or memory are lacking: the connection stays in the queue, and the socket readable.
        return pause();
      }
    }
  }

  void take(Descriptor accepted) {
    if (pending.size() >= max_pending) return refuse(std::move(accepted), Refusal::busy);
    set_stream_options(accepted);
    const int number = accepted.get();
    try {
      pending.insert_or_assign(number,
                               PendingConnection{std::move(accepted), Clock::now() + hello_timeout, {}, 0});
      loop.add(number, EPOLLIN, [this, number](std::uint32_t) { read_hello(number); });
    } catch (const std::exception&) {
      pending.erase(number);
    }
  }

  void read_hello(int number) {
    const auto found = pending.find(number);
    if (found == pending.end()) return;
    PendingConnection& from = found->second;
    const ssize_t got = recv(number, from.bytes.data() + from.have, sizeof(Hello) - from.have, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    if (got <= 0) return drop(number);
    from.have += std::size_t(got);
    if (from.have < sizeof(Hello) && begins_like_a_hello(from)) return;

    Hello hello;
    std::memcpy(&hello, from.bytes.data(), sizeof hello);
    const bool understood = from.have == sizeof hello && well_formed(hello);
    Descriptor accepted = std::move(from.socket);
    drop(number);
    if (!understood) return refuse(std::move(accepted), Refusal::malformed);
    try {
      on_connection_request(ConnectionRequest(loop, std::move(accepted), hello));
    } catch (const std::exception&) {
      // The caller has been closed.
    }
  }

  void refuse(Descriptor accepted, Refusal reason) {
    ConnectionRequest(loop, std::move(accepted), Hello{}).refuse(reason);
  }

  void drop(int number) {
    loop.remove(number);
    pending.erase(number);
  }

  void expire(Clock::time_point now) {
    for (auto at = pending.begin(); at != pending.end();) {
      const auto current = at++;
      if (current->second.deadline <= now) drop(current->first);
    }
    if (!paused) return;
    try {
      resume();
    } catch (const std::exception&) {
      // Still lacking: the next call tries again.
    }
  }

  EventLoop& loop;
  Descriptor socket;
  std::function<void(ConnectionRequest)> on_connection_request;
  std::unordered_map<int, PendingConnection> pending;
  bool paused = true;
};

Listener::Listener(EventLoop& loop, Descriptor socket,
                   std::function<void(ConnectionRequest)> on_connection_request)
    : impl_(std::make_unique<Impl>(loop, std::move(socket), std::move(on_connection_request))) {}
Listener::~Listener() = default;

void Listener::expire(Clock::time_point now) {
  impl_->expire(now);
}

}  // namespace gdrbench::softverbs
