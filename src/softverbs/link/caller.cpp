#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <exception>

#include "link/handshake.hpp"
#include "link/locality.hpp"
#include "link/ring_pair.hpp"

namespace gdrbench::softverbs {
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

std::unique_ptr<Link> Caller::accept() try {
  if (has_hung_up(socket_)) return nullptr;
  Link::Parts parts;
  Reply reply;
  const Locality& theirs = hello_.locality;
  if (shared_memory_allowed() && is_near(theirs)) {
    parts.rings = RingPair::map(open_descriptor(theirs.pid, theirs.rings, S_IFREG), theirs.cookie);
    parts.peer = reach(theirs, parts.rings != nullptr);
    reply.locality = our_locality(loop_->doorbell(), -1);
  }
  parts.shares_rings = parts.rings != nullptr;
  if (!parts.shares_rings) parts.rings = RingPair::make_private();
  reply.shares_rings = parts.shares_rings;
  reply.can_pull = parts.peer.readable;
  if (!send_reply(socket_, reply)) return nullptr;
  parts.socket = std::move(socket_);
  return std::make_unique<Link>(*loop_, std::move(parts));
} catch (const std::exception&) {
  return nullptr;  // what is lacking here (descriptors, memory) is the peer's broken connection
}

void Caller::refuse(Refusal reason) {
  Reply reply;
  reply.refusal = reason;
  send_reply(socket_, reply);
  socket_ = Descriptor();
}

}  // namespace gdrbench::softverbs
