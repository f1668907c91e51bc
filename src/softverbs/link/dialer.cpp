#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <mutex>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "link/handshake.hpp"
#include "link/locality.hpp"
#include "link/ring.hpp"
#include "link/stream_socket.hpp"

namespace gdrbench::softverbs {

/// A connection that is being made: connected, then its Hello sent, then the Reply read.
struct DialAttempt {
  Hello hello;
  sockaddr_in6 source, destination;
  Clock::time_point deadline;
  Dialer::Done done;

  Descriptor socket;
  std::unique_ptr<RingPair> rings;
  bool connected = false;
  std::size_t sent = 0, have = 0;
  std::array<std::byte, sizeof(Reply)> bytes;
};

namespace {

std::string failure(const char* tried, const sockaddr_in6& on, int error) {
  return std::string(tried) + " " + to_string(on) + ": " + errno_name(error);
}

void prepare(DialAttempt& attempt, EventLoop& loop) {
  attempt.hello.locality = {};
  if (!shared_memory_allowed()) return;
  attempt.hello.locality = our_locality(loop.doorbell(), -1);
  attempt.rings = RingPair::offer(attempt.hello.locality.cookie);
  attempt.hello.locality.rings = attempt.rings->descriptor();
}

std::unique_ptr<Link> establish(DialAttempt& attempt, EventLoop& loop, const Reply& reply) {
  Link::Parts parts;
  parts.socket = std::move(attempt.socket);
  // Rings that were offered in vain serve as private ones.
  parts.rings = attempt.rings ? std::move(attempt.rings) : RingPair::make_private();
  parts.shares_rings = reply.shares_rings != 0 && parts.rings->descriptor() >= 0;
  parts.rings->close_descriptor();
  parts.remote_can_pull = reply.can_pull != 0;
  if (attempt.hello.locality.pid != 0 && is_near(reply.locality)) parts.remote = reach(reply.locality, false);
  return std::make_unique<Link>(loop, std::move(parts));
}

}  // namespace

struct Dialer::Impl {
  explicit Impl(EventLoop& of) : loop(of), wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!wake) throw std::system_error(errno, std::generic_category(), "softverbs dialer: eventfd");
    loop.add(wake.get(), EPOLLIN, [this](std::uint32_t) { start_queued(); });
  }

  ~Impl() {
    loop.remove(wake.get());
    for (const auto& [number, unused] : attempts) loop.remove(number);
  }

  void start_queued() {
    std::uint64_t ignored;
    [[maybe_unused]] const ssize_t got = read(wake.get(), &ignored, sizeof ignored);
    std::vector<DialAttempt> starting;
    {
      const std::lock_guard guard(lock);
      starting.swap(queued);
    }
    for (DialAttempt& attempt : starting) start(std::move(attempt));
  }

  void start(DialAttempt attempt) {
    std::string error;
    try {
      error = try_to_connect(attempt);
      if (error.empty()) {
        const int number = attempt.socket.get();
        const auto at = attempts.insert_or_assign(number, std::move(attempt)).first;
        try {
          loop.add(number, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                   [this, number](std::uint32_t events) { go_on(number, events); });
          return;
        } catch (...) {
          attempt = std::move(at->second);
          attempts.erase(at);
          throw;
        }
      }
    } catch (const std::exception& exception) {
      error = exception.what();
    }
    tell(attempt.done, DialResult{nullptr, Refusal::none, std::move(error)});
  }

  std::string try_to_connect(DialAttempt& attempt) {
    prepare(attempt, loop);
    attempt.socket = open_stream_socket();
    if (!attempt.socket) return failure("socket for", attempt.destination, errno);
    set_stream_options(attempt.socket);
    if (!IN6_IS_ADDR_UNSPECIFIED(&attempt.source.sin6_addr)) {
      // The port is chosen when the destination is known, so the same one serves many destinations.
      const int yes = 1;
      setsockopt(attempt.socket.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof yes);
      attempt.source.sin6_port = 0;
      if (!bind_to(attempt.socket, attempt.source)) return failure("bind to", attempt.source, errno);
    }
    if (connect_to(attempt.socket, attempt.destination) || errno == EINPROGRESS) return {};
    return failure("connect to", attempt.destination, errno);
  }

  void go_on(int number, std::uint32_t events) {
    const auto found = attempts.find(number);
    if (found == attempts.end()) return;
    DialResult result;
    bool over = true;
    try {
      over = advance(found->second, events, result);
    } catch (const std::exception& exception) {
      result.error = exception.what();
    }
    if (over) finish(number, std::move(result));
  }

  /// True: it is over.
  bool advance(DialAttempt& attempt, std::uint32_t events, DialResult& result) {
    if (!attempt.connected) {
      if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) == 0) return false;
      int error = 0;
      socklen_t size = sizeof error;
      getsockopt(attempt.socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) {
        result.error = failure("connect to", attempt.destination, error);
        return true;
      }
      attempt.connected = true;
    }
    while (attempt.sent < sizeof(Hello)) {
      const auto* const bytes = reinterpret_cast<const std::byte*>(&attempt.hello);
      const ssize_t sent = send(attempt.socket.get(), bytes + attempt.sent, sizeof(Hello) - attempt.sent,
                                MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
      // A remote that refuses at once closes before it has our Hello: its answer is there to be read.
      if (sent < 0) break;
      attempt.sent += std::size_t(sent);
    }
    return read_reply(attempt, result);
  }

  bool read_reply(DialAttempt& attempt, DialResult& result) {
    while (attempt.have < sizeof(Reply)) {
      // Not a byte more: what follows belongs to the link.
      const ssize_t got = recv(attempt.socket.get(), attempt.bytes.data() + attempt.have,
                               sizeof(Reply) - attempt.have, MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
      if (got < 0) result.error = failure("wait for the answer of", attempt.destination, errno);
      if (got == 0)
        result.error = to_string(attempt.destination) + " closed the connection without an answer";
      if (got <= 0) return true;
      attempt.have += std::size_t(got);
    }
    Reply reply;
    std::memcpy(&reply, attempt.bytes.data(), sizeof reply);
    if (!well_formed(reply)) {
      result.error = to_string(attempt.destination) + " does not answer in the way of softverbs";
    } else if (reply.refusal != Refusal::none) {
      result.refusal = reply.refusal;
    } else {
      loop.remove(attempt.socket.get());  // the link waits for it in its own way
      result.link = establish(attempt, loop, reply);
    }
    return true;
  }

  void finish(int number, DialResult result) {
    const auto found = attempts.find(number);
    // Once a link has the socket, it is the link's registration.
    if (found->second.socket) loop.remove(number);
    const Done done = std::move(found->second.done);
    attempts.erase(found);
    tell(done, std::move(result));
  }

  static void tell(const Done& done, DialResult result) {
    try {
      done(std::move(result));
    } catch (const std::exception&) {
      // The loop goes on; the link, if there was one, has been closed.
    }
  }

  void expire(Clock::time_point now) {
    std::vector<int> late;
    for (const auto& [number, attempt] : attempts) {
      if (attempt.deadline <= now) late.push_back(number);
    }
    for (const int number : late) {
      const auto found = attempts.find(number);
      if (found == attempts.end() || found->second.deadline > now) continue;
      const char* const tried = found->second.connected ? "wait for the answer of" : "connect to";
      finish(number, {nullptr, Refusal::none, failure(tried, found->second.destination, ETIMEDOUT)});
    }
  }

  EventLoop& loop;
  Descriptor wake;
  std::mutex lock;
  std::vector<DialAttempt> queued;
  std::unordered_map<int, DialAttempt> attempts;  ///< by descriptor
};

Dialer::Dialer(EventLoop& loop) : impl_(std::make_unique<Impl>(loop)) {}
Dialer::~Dialer() = default;

void Dialer::dial(const Hello& hello, const sockaddr_in6& source, const sockaddr_in6& destination,
                  Clock::time_point deadline, Done done) {
  DialAttempt attempt{};
  attempt.hello = hello;
  attempt.source = source;
  attempt.destination = destination;
  attempt.deadline = deadline;
  attempt.done = std::move(done);
  {
    const std::lock_guard guard(impl_->lock);
    impl_->queued.push_back(std::move(attempt));
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(impl_->wake.get(), &one, sizeof one);
}

void Dialer::expire(Clock::time_point now) {
  impl_->expire(now);
}

}  // namespace gdrbench::softverbs
