#include "link/handshake.hpp"

#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "link/locality.hpp"
#include "link/ring.hpp"
#include "link/stream_socket.hpp"

namespace gdrbench::softverbs {
namespace {

constexpr std::uint32_t bits_24 = (1U << 24) - 1;

// Both are copied to and from the socket as they are: no padding, no pointer.
static_assert(std::has_unique_object_representations_v<Locality> && sizeof(Locality) == 80);
static_assert(std::is_trivially_copyable_v<Hello> && sizeof(Hello) == 144);
static_assert(std::has_unique_object_representations_v<Reply> && sizeof(Reply) == 104);

bool well_formed(const Locality& locality) {
  return locality.boot_id.back() == '\0' && locality.pid >= 0 && locality.doorbell >= -1 &&
         locality.rings >= -1;
}

}  // namespace

const char* to_string(Refusal refusal) {
  switch (refusal) {
    case Refusal::none:
      return "not refused";
    case Refusal::malformed:
      return "the remote does not speak this version of softverbs";
    case Refusal::no_queue_pair:
      return "the remote has no queue pair of that number";
    case Refusal::not_expected:
      return "the remote's queue pair expects another GID, QPN or PSN, or is connected already";
    case Refusal::not_ready:
      return "the remote's queue pair did not become ready to receive in time";
    case Refusal::busy:
      return "too many connections wait at the remote";
  }
  return "refused for a reason that this version does not know";
}

bool well_formed(const Hello& hello) {
  if (hello.magic != hello_magic || hello.version != hello_version || hello.byte_order != hello_byte_order) {
    return false;
  }
  if (!well_formed(hello.locality)) return false;
  switch (hello.kind) {
    case LinkKind::reliable:
    case LinkKind::unreliable:
      return hello.source_qpn <= bits_24 && hello.destination_qpn <= bits_24 && hello.psn <= bits_24;
    case LinkKind::datagrams:
      return hello.source_qpn == 0 && hello.destination_qpn == 0 && hello.psn == 0;
  }
  return false;
}

bool well_formed(const Reply& reply) {
  return reply.magic == hello_magic && reply.refusal <= Refusal::busy && reply.shares_rings <= 1 &&
         reply.can_pull <= 1 && well_formed(reply.locality);
}

bool shared_memory_allowed() {
  const char* const value = std::getenv("GDRBENCH_SOFTVERBS_TRANSPORT");
  if (value == nullptr || std::string_view(value) == "auto") return true;
  if (std::string_view(value) == "tcp") return false;
  throw std::invalid_argument(std::string("GDRBENCH_SOFTVERBS_TRANSPORT=") + value +
                              ": expected `auto` or `tcp`");
}

namespace {

// Errors of one port, not of the whole range.
bool is_taken(int error) {
  return error == EADDRINUSE || error == EACCES;
}

[[noreturn]] void fail(int error, const std::string& tried) {
  throw std::system_error(error, std::generic_category(), "softverbs: " + tried);
}

}  // namespace

std::uint16_t first_port() {
  const char* const value = std::getenv("GDRBENCH_SOFTVERBS_PORT");
  if (value == nullptr) return default_first_port;
  constexpr std::uint32_t last = 65536 - slots;
  const char* const end = value + std::strlen(value);
  std::uint32_t port = 0;
  const auto parsed = std::from_chars(value, end, port);
  if (parsed.ec != std::errc() || parsed.ptr != end || port == 0 || port > last) {
    throw std::invalid_argument("GDRBENCH_SOFTVERBS_PORT=" + std::string(value) +
                                ": expected the first of 4096 ports, 1 to " + std::to_string(last));
  }
  return std::uint16_t(port);
}

sockaddr_in6 address_of(const ibv_gid& gid, std::uint32_t slot, std::uint32_t scope_id) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(std::uint16_t(first_port() + slot));
  std::memcpy(&address.sin6_addr, gid.raw, sizeof address.sin6_addr);
  if (IN6_IS_ADDR_LINKLOCAL(&address.sin6_addr)) address.sin6_scope_id = scope_id;
  return address;
}

ListeningSlot claim_slot() {
  const std::uint16_t first = first_port();
  for (std::uint32_t slot = 0; slot < slots; ++slot) {
    Descriptor socket = open_stream_socket();
    if (!socket) fail(errno, "socket");
    // Connections of an earlier owner of the port that are in TIME_WAIT do not keep it taken; a listener
    // does.
    const int yes = 1;
    setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(std::uint16_t(first + slot));
    if (bind_to(socket, any) && listen(socket.get(), SOMAXCONN) == 0) return {std::move(socket), slot};
    if (!is_taken(errno)) fail(errno, "listen on port " + std::to_string(first + slot));
  }
  fail(EADDRINUSE, "listen on a port from " + std::to_string(first) + " to " +
                       std::to_string(first + slots - 1) +
                       ": all are taken; set GDRBENCH_SOFTVERBS_PORT to another range on both ends");
}

namespace {

bool has_hung_up(const Descriptor& socket) {
  char first;
  const ssize_t got = recv(socket.get(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

// The buffer of a fresh connection takes an answer as a whole.
bool send_reply(const Descriptor& socket, const Reply& reply) {
  return send(socket.get(), &reply, sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT) == ssize_t(sizeof reply);
}

}  // namespace

std::unique_ptr<Link> ConnectionRequest::accept() try {
  if (has_hung_up(socket_)) return nullptr;
  Link::Parts parts;
  Reply reply;
  const Locality& theirs = hello_.locality;
  if (shared_memory_allowed() && is_near(theirs)) {
    parts.rings = RingPair::map(open_descriptor(theirs.pid, theirs.rings, S_IFREG), theirs.cookie);
    parts.remote = reach(theirs, parts.rings != nullptr);
    reply.locality = our_locality(loop_->doorbell(), -1);
  }
  parts.shares_rings = parts.rings != nullptr;
  if (!parts.shares_rings) parts.rings = RingPair::make_private();
  reply.shares_rings = parts.shares_rings;
  reply.can_pull = parts.remote.readable;
  if (!send_reply(socket_, reply)) return nullptr;
  parts.socket = std::move(socket_);
  return std::make_unique<Link>(*loop_, std::move(parts));
} catch (const std::exception&) {
  return nullptr;  // what is lacking here (descriptors, memory) is the remote's broken connection
}

void ConnectionRequest::refuse(Refusal reason) {
  Reply reply;
  reply.refusal = reason;
  send_reply(socket_, reply);
  socket_ = Descriptor();
}

}  // namespace gdrbench::softverbs
