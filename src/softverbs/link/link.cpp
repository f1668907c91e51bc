#include "link/link.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "link/locality.hpp"

namespace gdrbench::softverbs {
namespace {

struct Vectors {
  explicit Vectors(const RingSpans& spans)
      : parts{{{spans.first.data(), spans.first.size()}, {spans.second.data(), spans.second.size()}}} {
    message.msg_iov = parts.data();
    message.msg_iovlen = spans.second.empty() ? 1 : 2;
  }
  Vectors(const Vectors&) = delete;

  std::array<iovec, 2> parts;
  msghdr message{};
};

bool would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK;
}

const char* why_lost(int error) {
  switch (error) {
    case ECONNRESET:
      return "the remote reset the connection (ECONNRESET)";
    case EPIPE:
      return "the remote closed the connection (EPIPE)";
    case ETIMEDOUT:
      return "the remote's host does not answer (ETIMEDOUT)";
    default: {
      const char* const name = strerrorname_np(error);
      return name == nullptr ? "the connection is lost" : name;
    }
  }
}

}  // namespace

Link::Link(EventLoop& loop, Parts parts)
    : loop_(loop),
      socket_(std::move(parts.socket)),
      rings_(std::move(parts.rings)),
      remote_(std::move(parts.remote)),
      shares_rings_(parts.shares_rings),
      remote_can_pull_(parts.remote_can_pull),
      out_(rings_->outgoing()),
      in_(rings_->incoming()),
      unsent_(rings_->outgoing()),
      received_(rings_->incoming()),
      socket_ready_(std::make_shared<std::atomic<bool>>(false)) {
  // The handler only wakes the engine: whoever owns the link then looks at the socket under the owner's lock.
  loop_.add(socket_.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
            [ready = socket_ready_](std::uint32_t) { ready->store(true, std::memory_order_release); });
}

Link::~Link() {
  loop_.remove(socket_.get());
}

void Link::fail(const char* why) {
  if (broken_ == nullptr) broken_ = why;
}

void Link::refuse_input(const char* why) {
  fail(why);
  input_refused_ = true;
  header_valid_ = false;
  shutdown(socket_.get(), SHUT_RDWR);
}

void Link::shut(const char* why) {
  refuse_input(why);
}

// --- Outgoing

bool Link::fits(std::size_t payload_bytes) {
  if (broken()) return false;
  const std::size_t bytes = frame_bytes(payload_bytes);
  if (out_.fits(bytes)) return true;
  if (out_.corrupt()) {
    fail("the remote left an impossible position in the ring");
  } else if (!shares_rings_) {
    write_socket();
    return !broken() && out_.fits(bytes);
  }
  return false;
}

RingSpans Link::add(const FrameHeader& header) {
  // Frames begin at multiples of 64, so the header does not wrap.
  std::memcpy(out_.reserve(sizeof header).first.data(), &header, sizeof header);
  RingSpans room = out_.reserve(frame_bytes(header.payload_bytes) - sizeof header);
  if (room.first.size() >= header.payload_bytes) {
    return {room.first.first(header.payload_bytes), {}};
  }
  return {room.first, room.second.first(header.payload_bytes - room.first.size())};
}

void Link::flush() {
  if (broken()) return;  // a frame that was begun when it was shut is not whole
  const bool remote_sleeps = out_.publish();
  if (!shares_rings_) {
    write_socket();
  } else if (remote_sleeps) {
    ring_doorbell();
  }
}

bool Link::all_sent() {
  return shares_rings_ || unsent_.available(1) == 0;
}

void Link::ring_doorbell() {
  // Neither can fail in a way that matters: a full doorbell wakes, and of a dead remote the socket tells.
  [[maybe_unused]] const ssize_t sent = remote_.doorbell
                                            ? write(remote_.doorbell.get(), "", 1)
                                            : send(socket_.get(), "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Link::write_socket() {
  while (!broken()) {
    const std::size_t waiting = unsent_.available();
    if (waiting == 0) return;
    Vectors vectors(unsent_.peek(0, waiting));
    const ssize_t sent = sendmsg(socket_.get(), &vectors.message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      unsent_.consume(std::size_t(sent));
      static_cast<void>(unsent_.release());  // the producer is this link: nobody to ring
    } else if (would_block(errno)) {
      return;
    } else if (errno != EINTR) {
      fail(why_lost(errno));
    }
  }
}

// --- Incoming

const FrameHeader* Link::next() {
  if (header_valid_) {
    // A frame may be kept for long: the end of its remote must show all the same.
    if (socket_ready_->load(std::memory_order_relaxed) &&
        socket_ready_->exchange(false, std::memory_order_acquire)) {
      if (shares_rings_) watch_socket();
      while (!shares_rings_ && read_socket()) {
      }
    }
    return &header_;
  }
  if (input_refused_) return nullptr;
  if (shares_rings_) {
    // First the socket, then the ring: what a remote wrote before it went away is there when its end is seen.
    if (socket_ready_->load(std::memory_order_relaxed)) watch_socket();
    return take_header() ? &header_ : nullptr;
  }
  if (unsent_.available(1) != 0) write_socket();
  while (!take_header()) {
    if (input_refused_ || !read_socket()) return nullptr;
  }
  return &header_;
}

bool Link::take_header() {
  std::size_t available = in_.available(sizeof header_);
  if (in_.corrupt() || (shares_rings_ && available % frame_alignment != 0)) {
    refuse_input("the remote left an impossible position in the ring");
    return false;
  }
  if (available < sizeof header_) return false;
  std::memcpy(&header_, in_.peek(0, sizeof header_).first.data(), sizeof header_);
  if (const char* const why = why_malformed(header_)) {
    refuse_input(why);
    return false;
  }
  const std::size_t bytes = frame_bytes(header_.payload_bytes);
  if (available < bytes) available = in_.available(bytes);
  header_valid_ = available >= bytes;
  if (!header_valid_ && shares_rings_) refuse_input("the remote published a part of a frame");
  return header_valid_;
}

RingSpans Link::payload() {
  return in_.peek(sizeof header_, header_.payload_bytes);
}

void Link::consume() {
  in_.consume(frame_bytes(header_.payload_bytes));
  header_valid_ = false;
}

void Link::release() {
  if (in_.release() && shares_rings_) ring_doorbell();
}

bool Link::arm(bool stalled) {
  if (input_refused_) return false;
  const bool was_broken = broken();
  if (shares_rings_) {
    const bool came = in_.arm(stalled ? in_.available() : 0);
    if (socket_ready_->load(std::memory_order_relaxed)) watch_socket();
    return came || in_.corrupt() || broken() != was_broken;
  }
  if (stalled) return false;  // the kernel tells of what comes
  // The socket tells only of what comes after it was found empty, so there must be room to empty it.
  release();
  while (!header_valid_ && !take_header() && !input_refused_) {
    if (!read_socket()) return broken() != was_broken;
  }
  return true;
}

void Link::disarm() {
  if (shares_rings_) in_.disarm();
}

// With shared rings the socket carries nothing but rings of the doorbell, and the end.
void Link::watch_socket() {
  socket_ready_->store(false, std::memory_order_seq_cst);
  std::array<char, 64> ignored;
  for (int rounds = 0; rounds < 16 && !input_ended_; ++rounds) {
    const ssize_t got = recv(socket_.get(), ignored.data(), ignored.size(), MSG_DONTWAIT);
    if (got > 0 || (got < 0 && errno == EINTR)) continue;
    if (got < 0 && would_block(errno)) return;
    input_ended_ = true;
    fail(got == 0 ? "the remote closed the connection" : why_lost(errno));
  }
  if (!input_ended_) socket_ready_->store(true, std::memory_order_seq_cst);
}

// One attempt. True: something came, and more may be there.
bool Link::read_socket() {
  if (input_ended_) return false;
  const std::size_t room = received_.room();
  if (room == 0) return false;
  Vectors vectors(received_.reserve(room));
  const ssize_t got = recvmsg(socket_.get(), &vectors.message, MSG_DONTWAIT);
  const int error = errno;
  received_.retract(room - (got > 0 ? std::size_t(got) : 0));
  static_cast<void>(received_.publish());  // the consumer is this link: nobody to ring
  if (got > 0) return true;
  if (got < 0 && would_block(error)) return false;
  if (got < 0 && error == EINTR) return true;
  input_ended_ = true;
  fail(got == 0 ? "the remote closed the connection" : why_lost(error));
  return false;
}

int Link::pull(std::uint64_t remote_address, void* local, std::size_t length) const {
  if (!remote_.readable) return EPERM;
  return copy_from_process(remote_.pid, remote_address, local, length);
}

}  // namespace gdrbench::softverbs
