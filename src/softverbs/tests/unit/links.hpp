#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "link/handshake.hpp"
#include "link/link.hpp"
#include "link/locality.hpp"

/// Two ends that are connected and driven by the thread of the test.
namespace gdrbench::softverbs::test {

using namespace std::chrono_literals;

/// Sets an environment variable for the lifetime of a test.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    setenv(name, value, 1);
  }
  Environment(const Environment&) = delete;
  ~Environment() {
    if (before_) {
      setenv(name_, before_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

inline ibv_gid loopback_gid() {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  gid.raw[12] = 127;
  gid.raw[15] = 1;
  return gid;
}

inline bool wait_for(const std::vector<EventLoop*>& loops, const std::function<bool()>& done) {
  const auto deadline = Clock::now() + 20s;
  while (!done()) {
    if (Clock::now() > deadline) return false;
    for (EventLoop* const loop : loops) loop->wait(Clock::now() + 1ms);
  }
  return true;
}

/// A process that listens: what comes is kept.
struct Process {
  Process() : Process(claim_slot()) {}
  explicit Process(ListeningSlot of)
      : slot(of.slot), listener(loop, std::move(of.socket), [this](ConnectionRequest request) {
          requests.push_back(std::move(request));
        }) {}

  sockaddr_in6 address() const { return address_of(loopback_gid(), slot, 0); }

  std::uint32_t slot;
  EventLoop loop;
  std::vector<ConnectionRequest> requests;
  Listener listener;
  Dialer dialer{loop};
};

inline DialResult dial(Process& from, const sockaddr_in6& destination, const std::function<void()>& meanwhile,
                       std::vector<EventLoop*> loops, const Hello& hello = {},
                       const sockaddr_in6& source = {}) {
  std::optional<DialResult> result;
  from.dialer.dial(hello, source, destination, Clock::now() + 10s,
                   [&](DialResult got) { result = std::move(got); });
  loops.push_back(&from.loop);
  EXPECT_TRUE(wait_for(loops, [&] {
    meanwhile();
    return result.has_value();
  }));
  return result ? std::move(*result) : DialResult{};
}

struct Connection {
  std::unique_ptr<Link> dialing, accepting;
};

inline Connection connect(Process& from, Process& to) {
  Connection made;
  auto accept = [&] {
    if (to.requests.empty()) return;
    made.accepting = to.requests.back().accept();
    to.requests.pop_back();
  };
  DialResult result = dial(from, to.address(), accept, {&to.loop});
  EXPECT_EQ(result.error, "");
  EXPECT_EQ(result.refusal, Refusal::none);
  made.dialing = std::move(result.link);
  return made;
}

/// Byte `position` of the payload of message `number`.
inline std::byte pattern(std::uint32_t number, std::size_t position) {
  return std::byte(number * 131 + position * 7 + (position >> 8));
}

inline FrameHeader send_header(std::uint32_t number, std::size_t payload_bytes) {
  FrameHeader header;
  header.type = FrameType::send;
  header.message = number;
  header.payload_bytes = std::uint32_t(payload_bytes);
  header.length = payload_bytes;
  return header;
}

/// Adds a frame, which is not flushed; false when it does not fit.
inline bool try_add(Link& link, std::uint32_t number, std::size_t payload_bytes) {
  if (!link.fits(payload_bytes)) return false;
  const RingSpans room = link.add(send_header(number, payload_bytes));
  EXPECT_EQ(room.first.size() + room.second.size(), payload_bytes);
  std::size_t position = 0;
  for (std::byte& byte : room.first) byte = pattern(number, position++);
  for (std::byte& byte : room.second) byte = pattern(number, position++);
  return true;
}

/// Takes the next frame if it is there; it must be that message and unharmed.
inline bool try_take(Link& link, std::uint32_t number, std::size_t payload_bytes) {
  const FrameHeader* const header = link.next();
  if (header == nullptr) return false;
  EXPECT_EQ(header->message, number);
  EXPECT_EQ(header->payload_bytes, payload_bytes);
  const RingSpans payload = link.payload();
  EXPECT_EQ(payload.first.size() + payload.second.size(), payload_bytes);
  std::size_t position = 0, wrong = 0;
  for (const std::byte byte : payload.first) wrong += byte != pattern(number, position++);
  for (const std::byte byte : payload.second) wrong += byte != pattern(number, position++);
  EXPECT_EQ(wrong, 0u) << "message " << number;
  link.consume();
  link.release();
  return true;
}

}  // namespace gdrbench::softverbs::test
