#include "wire/socket_watch.hpp"

#include <sys/epoll.h>

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

std::uint32_t wanted(const TcpLane& lane) {
  return (lane.wants_to_read() ? EPOLLIN : 0U) | (lane.wants_to_write() ? EPOLLOUT : 0U);
}

}  // namespace

SocketWatch::SocketWatch(std::vector<const TcpLane*> lanes)
    : lanes_(std::move(lanes)), epoll_(epoll_create1(EPOLL_CLOEXEC)), events_(lanes_.size(), EPOLLIN) {
  if (!epoll_) throw SystemError(errno, "epoll_create1");
  for (const TcpLane* lane : lanes_) watch(epoll_.get(), EPOLL_CTL_ADD, lane->socket().fd(), EPOLLIN);
}

void SocketWatch::wait(int extra_fd, int timeout_ms) {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const std::uint32_t events = wanted(*lanes_[i]);
    if (events == events_[i]) continue;
    events_[i] = events;
    watch(epoll_.get(), EPOLL_CTL_MOD, lanes_[i]->socket().fd(), events);
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
