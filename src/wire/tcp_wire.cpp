#include "wire/tcp_wire.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "gdrbench/error.hpp"

namespace gdrbench::wire {
namespace {

void watch(int epoll, int operation, int fd, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  if (epoll_ctl(epoll, operation, fd, &event) != 0)
    throw SystemError(errno, "watching a socket by epoll_ctl");
}

}  // namespace

TcpWire::TcpWire(const WireLimits& limits) : limits_(limits) {}

Region TcpWire::register_memory(const MemoryView& view) {
  if (view.on_gpu) throw Unavailable("sockets cannot send from GPU memory; use a staged path");
  const auto key = static_cast<std::uint32_t>(regions_.size());
  regions_.push_back({.address = view.address,
                      .length = view.length,
                      .lkey = key,
                      .rkey = key,
                      .registration = Registration::none});
  return regions_.back();
}

void TcpWire::connect(const nlohmann::json&, std::vector<Socket> sockets) {
  if (sockets.size() != limits_.lanes)
    throw Error(fmt::format("the TCP wire needs {} connections and got {}", limits_.lanes, sockets.size()));
  for (Socket& socket : sockets) {
    lanes_.emplace_back(std::move(socket), static_cast<std::uint32_t>(lanes_.size()), regions_);
  }
  for (const ReceiveRequest& request : early_receives_)
    lanes_[request.lane].post_receive(request, limits_.receive_depth);
  early_receives_.clear();
}

int TcpWire::post_send(const SendRequest& request) {
  return lanes_[request.lane].post_send(request, limits_.send_depth, completed_);
}

int TcpWire::post_receive(const ReceiveRequest& request) {
  if (lanes_.empty()) {
    early_receives_.push_back(request);
    return 0;
  }
  return lanes_[request.lane].post_receive(request, limits_.receive_depth);
}

std::size_t TcpWire::poll(std::span<Completion> out) {
  if (completed_.empty())
    for (TcpLane& lane : lanes_) lane.progress(completed_);
  const std::size_t count = std::min(out.size(), completed_.size());
  std::copy_n(completed_.begin(), count, out.begin());
  completed_.erase(completed_.begin(), completed_.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

void TcpWire::watch_lanes() {
  epoll_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) throw SystemError(errno, "epoll_create1");
  for (const TcpLane& lane : lanes_) watch(epoll_.get(), EPOLL_CTL_ADD, lane.socket().fd(), EPOLLIN);
  watches_output_.assign(lanes_.size(), false);
}

void TcpWire::wait(int extra_fd, int timeout_ms) {
  if (!completed_.empty()) return;
  // Not before the first wait: a socket in an epoll set makes every arrival dearer, for polling too.
  if (!epoll_) watch_lanes();
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[i].wants_to_write() == watches_output_[i]) continue;
    watches_output_[i] = !watches_output_[i];
    watch(epoll_.get(), EPOLL_CTL_MOD, lanes_[i].socket().fd(),
          watches_output_[i] ? EPOLLIN | EPOLLOUT : EPOLLIN);
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

// One frame's length is a 32-bit number; a page less keeps sums of it within that.
std::uint64_t TcpWire::max_message() const {
  return (std::uint64_t{1} << 31) - 4096;
}

std::uint64_t TcpWire::bytes_moved() const {
  std::uint64_t sum = 0;
  for (const TcpLane& lane : lanes_) sum += lane.bytes_moved();
  return sum;
}

nlohmann::json TcpWire::describe() const {
  nlohmann::json described{{"wire", "tcp"}, {"sockets", lanes_.size()}};
  if (lanes_.empty()) return described;
  const Socket& socket = lanes_.front().socket();
  described["local"] = socket.local_address();
  described["peer"] = socket.peer_address();
  int mss = 0;
  socklen_t length = sizeof mss;
  if (getsockopt(socket.fd(), IPPROTO_TCP, TCP_MAXSEG, &mss, &length) == 0) described["mss_bytes"] = mss;
  char congestion[16] = {};
  length = sizeof congestion - 1;
  if (getsockopt(socket.fd(), IPPROTO_TCP, TCP_CONGESTION, congestion, &length) == 0)
    described["congestion_control"] = congestion;
  return described;
}

}  // namespace gdrbench::wire
