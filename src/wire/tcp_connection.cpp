#include "wire/tcp_connection.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "gdrbench/error.hpp"

namespace gdrbench::wire {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are little-endian on the socket");

FrameHeader::Kind kind_of(Op op) {
  switch (op) {
    case Op::send:
      return FrameHeader::Kind::send;
    case Op::write:
      return FrameHeader::Kind::write;
    case Op::write_imm:
      return FrameHeader::Kind::write_imm;
    case Op::read:
      return FrameHeader::Kind::read_request;
  }
  return FrameHeader::Kind::send;
}

}  // namespace

TcpConnection::TcpConnection(Socket socket, std::uint32_t index, const std::vector<Region>& regions)
    : socket_(std::move(socket)), remote_(socket_.remote_address()), index_(index), regions_(&regions) {}

void TcpConnection::post_send(const SendRequest& request, Ring<Completion>& completed) {
  Outgoing out{.header = {.kind = kind_of(request.op),
                          .length = request.length,
                          .immediate = request.immediate,
                          .rkey = request.rkey,
                          .address = request.remote_address},
               .request = request};
  if (request.op == Op::read) {
    reads_.push_back(request);
    out.completes = false;
    out.request.length = 0;
  }
  // Mostly the kernel takes a message at once, and it need not be queued.
  if (!outgoing_.empty() || !write_one(out, completed)) outgoing_.push_back(out);
}

void TcpConnection::progress(Ring<Completion>& completed) {
  if (!outgoing_.empty()) write_out(completed);
  consume(completed);
  while (read_in(completed)) {
  }
}

// A short frame in one piece: gathering two costs the kernel more than the copy.
ssize_t TcpConnection::send_small(const Outgoing& out) const {
  std::array<std::byte, sizeof(FrameHeader) + small_payload> frame;
  std::memcpy(frame.data(), &out.header, sizeof(FrameHeader));
  if (out.request.length > 0)
    std::memcpy(frame.data() + sizeof(FrameHeader), out.request.address, out.request.length);
  return ::send(socket_.fd(), frame.data(), sizeof(FrameHeader) + out.request.length,
                MSG_NOSIGNAL | MSG_DONTWAIT);
}

ssize_t TcpConnection::send_rest(Outgoing& out) const {
  std::array<iovec, 2> parts{};
  std::size_t count = 0;
  if (out.sent < sizeof(FrameHeader))
    parts[count++] = {reinterpret_cast<std::byte*>(&out.header) + out.sent, sizeof(FrameHeader) - out.sent};
  const std::uint64_t payload_sent = out.sent > sizeof(FrameHeader) ? out.sent - sizeof(FrameHeader) : 0;
  if (payload_sent < out.request.length)
    parts[count++] = {out.request.address + payload_sent, out.request.length - payload_sent};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  return sendmsg(socket_.fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void TcpConnection::write_out(Ring<Completion>& completed) {
  while (!outgoing_.empty() && write_one(outgoing_.front(), completed)) outgoing_.pop_front();
}

// True once the kernel has taken all of it.
bool TcpConnection::write_one(Outgoing& out, Ring<Completion>& completed) {
  const std::uint64_t length = sizeof(FrameHeader) + out.request.length;
  while (out.sent < length) {
    const ssize_t n = out.sent == 0 && out.request.length <= small_payload ? send_small(out) : send_rest(out);
    if (n < 0) {
      if (errno == EAGAIN || errno == EINTR) return false;
      lost(errno, "sending");
    }
    out.sent += static_cast<std::uint64_t>(n);
    bytes_moved_ += static_cast<std::uint64_t>(n);
    if (out.sent < length) return false;  // the socket is full
  }
  if (out.completes) {
    sends_.fetch_sub(1, std::memory_order_relaxed);
    if (out.request.signaled)
      completed.push_back({.id = out.request.id, .kind = Completion::Kind::sent, .queue_pair = index_});
  }
  return true;
}

ssize_t TcpConnection::receive_payload(std::uint64_t wanted) {
  std::array<iovec, 2> parts{{{destination_ + placed_, wanted}, {buffer_.data(), buffer_.size()}}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return recvmsg(socket_.fd(), &message, MSG_DONTWAIT);
}

// Reads once from the socket: the rest of the frame's payload into its place, and ahead into the buffer.
// Returns whether it is worth trying again at once.
bool TcpConnection::read_in(Ring<Completion>& completed) {
  if (!wants_to_read()) return false;
  buffer_begin_ = buffer_end_ = 0;
  const std::uint64_t wanted = place_ == Place::payload ? incoming_.length - placed_ : 0;
  const ssize_t n = wanted == 0 ? ::recv(socket_.fd(), buffer_.data(), buffer_.size(), MSG_DONTWAIT)
                                : receive_payload(wanted);
  if (n == 0) lost(0, "receiving");
  if (n < 0) {
    if (errno != EAGAIN && errno != EINTR) lost(errno, "receiving");
    return false;
  }
  const auto got = static_cast<std::uint64_t>(n);
  bytes_moved_ += got;
  const std::uint64_t direct = std::min(got, wanted);
  placed_ += direct;
  buffer_end_ = got - direct;
  if (wanted > 0 && placed_ == incoming_.length) end_frame(completed);
  consume(completed);
  return got == wanted + buffer_.size();
}

// Places what was read ahead, frame by frame, until the buffer is empty or a frame must wait for a receive.
void TcpConnection::consume(Ring<Completion>& completed) {
  while (buffer_begin_ != buffer_end_) {
    const std::size_t available = buffer_end_ - buffer_begin_;
    if (place_ == Place::header) {
      // A header split between two reads is gathered in incoming_; placed_ counts its bytes.
      const std::size_t part = std::min(available, sizeof(FrameHeader) - placed_);
      if (placed_ < sizeof(FrameHeader)) {
        std::memcpy(reinterpret_cast<std::byte*>(&incoming_) + placed_, buffer_.data() + buffer_begin_, part);
        placed_ += part;
        buffer_begin_ += part;
      }
      if (placed_ < sizeof(FrameHeader)) return;
      if (!begin_frame(completed)) return;
    } else {
      const std::size_t part = std::min<std::uint64_t>(available, incoming_.length - placed_);
      std::memcpy(destination_ + placed_, buffer_.data() + buffer_begin_, part);
      placed_ += part;
      buffer_begin_ += part;
      if (placed_ == incoming_.length) end_frame(completed);
    }
  }
  // A complete header whose frame waits for a receive may be all that is left.
  if (place_ == Place::header && placed_ == sizeof(FrameHeader)) begin_frame(completed);
}

// Finds where the payload goes. False: the frame needs a receive that is not posted yet.
bool TcpConnection::begin_frame(Ring<Completion>& completed) {
  using Kind = FrameHeader::Kind;
  switch (incoming_.kind) {
    case Kind::send:
      if (receives_.empty()) return false;
      if (incoming_.length > receives_.front().length)
        throw Error(fmt::format("{}: message of {} bytes is longer than the posted receive of {} bytes",
                                remote_, incoming_.length, receives_.front().length));
      destination_ = receives_.front().address;
      break;
    case Kind::write_imm:
      if (receives_.empty()) return false;
      [[fallthrough]];
    case Kind::write:
      destination_ = place_of_write();
      break;
    case Kind::read_request: {
      if (outgoing_.size() >= max_queued) return false;  // until this end has sent some of its answers
      Outgoing out;
      out.header = {.kind = Kind::read_response, .length = incoming_.length};
      out.request.address = resolve(incoming_);
      out.request.length = incoming_.length;
      out.completes = false;
      outgoing_.push_back(out);
      incoming_.length = 0;
      if (outgoing_.size() == 1) write_out(completed);
      break;
    }
    case Kind::read_response:
      if (reads_.empty() || reads_.front().length != incoming_.length)
        throw Error(fmt::format("{}: answer to a read that was not asked for", remote_));
      destination_ = reads_.front().address;
      break;
    default:
      throw Error(
          fmt::format("{}: unknown frame kind {}", remote_, static_cast<std::uint32_t>(incoming_.kind)));
  }
  place_ = Place::payload;
  placed_ = 0;
  if (incoming_.length == 0) end_frame(completed);
  return true;
}

void TcpConnection::end_frame(Ring<Completion>& completed) {
  using Kind = FrameHeader::Kind;
  place_ = Place::header;
  placed_ = 0;
  if (word_target_ != nullptr) {
    auto& word = *reinterpret_cast<std::uint64_t*>(std::exchange(word_target_, nullptr));
    std::atomic_ref<std::uint64_t>(word).store(std::bit_cast<std::uint64_t>(word_),
                                               std::memory_order_release);
  }
  if (incoming_.kind == Kind::send || incoming_.kind == Kind::write_imm) {
    completed.push_back({.id = receives_.front().id,
                         .kind = Completion::Kind::received,
                         .queue_pair = index_,
                         .length = incoming_.length,
                         .immediate = incoming_.immediate,
                         .has_immediate = incoming_.kind == Kind::write_imm});
    receives_.pop_front();
    receives_posted_.fetch_sub(1, std::memory_order_relaxed);
  } else if (incoming_.kind == Kind::read_response) {
    if (reads_.front().signaled)
      completed.push_back({.id = reads_.front().id, .kind = Completion::Kind::sent, .queue_pair = index_});
    reads_.pop_front();
    sends_.fetch_sub(1, std::memory_order_relaxed);
  }
}

// An aligned word is written in one piece, as NICs do: another thread may poll it.
std::byte* TcpConnection::place_of_write() {
  std::byte* const target = resolve(incoming_);
  if (incoming_.length != word_.size() || incoming_.address % word_.size() != 0) return target;
  word_target_ = target;
  return word_.data();
}

std::byte* TcpConnection::resolve(const FrameHeader& header) const {
  if (header.rkey < regions_->size()) {
    const Region& region = (*regions_)[header.rkey];
    const auto base = reinterpret_cast<std::uint64_t>(region.address);
    if (header.address >= base && header.address - base <= region.length &&
        header.length <= region.length - (header.address - base))
      return region.address + (header.address - base);
  }
  throw Error(fmt::format("{}: access to {} bytes that are not registered (rkey {})", remote_, header.length,
                          header.rkey));
}

void TcpConnection::lost(int error, const char* tried) const {
  throw PeerLost(fmt::format("TCP wire to {}: {}: {}", remote_, tried,
                             error == 0 ? "the remote end closed the connection" : errno_name(error)));
}

namespace {

void watch(int epoll, int operation, int fd, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  if (epoll_ctl(epoll, operation, fd, &event) != 0)
    throw SystemError(errno, "watching a socket by epoll_ctl");
}

std::uint32_t wanted(const TcpConnection& connection) {
  return (connection.wants_to_read() ? EPOLLIN : 0U) | (connection.wants_to_write() ? EPOLLOUT : 0U);
}

}  // namespace

SocketWatch::SocketWatch(std::vector<const TcpConnection*> connections)
    : connections_(std::move(connections)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      events_(connections_.size(), EPOLLIN) {
  if (!epoll_) throw SystemError(errno, "epoll_create1");
  for (const TcpConnection* connection : connections_)
    watch(epoll_.get(), EPOLL_CTL_ADD, connection->socket().fd(), EPOLLIN);
}

void SocketWatch::wait(int extra_fd, int timeout_ms) {
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    const std::uint32_t events = wanted(*connections_[i]);
    if (events == events_[i]) continue;
    events_[i] = events;
    watch(epoll_.get(), EPOLL_CTL_MOD, connections_[i]->socket().fd(), events);
  }
  if (extra_fd != extra_fd_) {
    if (extra_fd_ >= 0) watch(epoll_.get(), EPOLL_CTL_DEL, extra_fd_, 0);
    if (extra_fd >= 0) watch(epoll_.get(), EPOLL_CTL_ADD, extra_fd, EPOLLIN);
    extra_fd_ = extra_fd;
  }
  epoll_event event{};
  if (epoll_wait(epoll_.get(), &event, 1, timeout_ms) < 0 && errno != EINTR)
    throw SystemError(errno, "waiting for sockets by epoll_wait");
}

}  // namespace gdrbench::wire
