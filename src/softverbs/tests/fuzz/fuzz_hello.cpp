// What a client says to the port of a process, and what a dialed client answers.
//
// Input: one byte of mode (bit 0: it answers a Dialer, else it calls a Listener; bit 1: where the Hello or
// Reply comes from is made to be this process, so that what it tells of itself is followed up), then what it
// says.

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "link/handshake.hpp"
#include "link/locality.hpp"
#include "link/stream_socket.hpp"

namespace gdrbench::softverbs {
namespace {

using namespace std::chrono_literals;
using Bytes = std::vector<std::uint8_t>;

void require(bool condition) {
  if (!condition) std::abort();
}

// The members that make a Locality near, at `offset` of what is said.
void come_from_here(Bytes& said, std::size_t offset) {
  static const Locality here = our_locality(-1, -1);
  constexpr std::size_t size = offsetof(Locality, doorbell);
  if (said.size() >= offset + size) std::memcpy(said.data() + offset, &here, size);
}

void say(int socket, const Bytes& said) {
  if (!said.empty()) send(socket, said.data(), said.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void use(Link& link) {
  for (int frames = 0; frames < 1000 && link.next() != nullptr; ++frames) link.consume();
  link.release();
  if (link.fits(8)) link.add(FrameHeader{.payload_bytes = 8, .type = FrameType::send, .length = 8});
  link.flush();
  link.arm();
}

void call_listener(const Bytes& said) {
  static EventLoop loop;
  // Not TCP, which would run out of ports. The kernel chooses an abstract name.
  Descriptor listening(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socklen_t size = sizeof(sa_family_t);
  require(bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
  size = sizeof address;
  getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address), &size);
  require(listen(listening.get(), 8) == 0);

  std::unique_ptr<Link> link;
  Listener listener(loop, std::move(listening), [&](ConnectionRequest request) {
    require(well_formed(request.hello()));
    link = request.accept();
  });
  Descriptor client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  require(connect(client.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
  loop.wait(Clock::time_point{});  // accepts
  say(client.get(), said);
  for (int i = 0; i < 3; ++i) loop.wait(Clock::time_point{});
  if (link) use(*link);
  client = Descriptor();
  loop.wait(Clock::time_point{});
  if (link) use(*link);
  listener.expire(Clock::time_point::max());
}

/// Accepts what this process dials.
struct Answerer {
  Answerer() : socket(open_stream_socket()) {
    address.sin6_family = AF_INET6;
    address.sin6_addr.s6_addr[10] = address.sin6_addr.s6_addr[11] = 0xff;
    address.sin6_addr.s6_addr[12] = 127;
    address.sin6_addr.s6_addr[15] = 1;
    require(bind_to(socket, address) && listen(socket.get(), 8) == 0);
    sockaddr_in6 bound{};
    socklen_t size = sizeof bound;
    getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size);
    address.sin6_port = bound.sin6_port;  // in the same place of a sockaddr_in
  }
  Descriptor socket;
  sockaddr_in6 address{};
};

void answer_dialer(const Bytes& said) {
  static EventLoop loop;
  static const Answerer answerer;
  Dialer dialer(loop);
  std::optional<DialResult> result;
  dialer.dial({}, {}, answerer.address, Clock::now() + 10s, [&](DialResult got) {
    require(!result);
    result = std::move(got);
  });
  Descriptor accepted;
  while (!accepted) {
    loop.wait(Clock::time_point{});
    accepted = Descriptor(accept4(answerer.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  // Closing resets the connection: no port is left in TIME_WAIT.
  const linger at_once{1, 0};
  setsockopt(accepted.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  say(accepted.get(), said);
  for (int i = 0; i < 5 && !result; ++i) loop.wait(Clock::time_point{});
  if (result && result->link) use(*result->link);
  accepted = Descriptor();
  while (!result) loop.wait(Clock::now() + 1ms);
  require(!result->link || (result->refusal == Refusal::none && result->error.empty()));
  if (result->link) use(*result->link);
}

}  // namespace
}  // namespace gdrbench::softverbs

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gdrbench::softverbs;
  if (size == 0) return 0;
  const bool answers = data[0] & 1, near = data[0] & 2;
  Bytes said(data + 1, data + size);
  if (near) come_from_here(said, answers ? offsetof(Reply, locality) : offsetof(Hello, locality));
  if (answers) {
    answer_dialer(said);
  } else {
    call_listener(said);
  }
  return 0;
}
