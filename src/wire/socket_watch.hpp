#pragma once

#include <vector>

#include "wire/tcp_lane.hpp"

namespace gdrbench::wire {

/// Sleeps until the sockets of some lanes can go on. Best made by the first wait: a socket in an epoll set
/// makes every arrival dearer, for polling too.
class SocketWatch {
 public:
  /// The lanes outlive it. Throws SystemError.
  explicit SocketWatch(std::vector<const TcpLane*> lanes);

  /// Until a socket has something to read or room to write, for a lane that wants to; or `extra_fd` (−1:
  /// none) is readable, or `timeout_ms` (−1: never) is over.
  void wait(int extra_fd, int timeout_ms);

 private:
  std::vector<const TcpLane*> lanes_;
  FileDescriptor epoll_;
  std::vector<std::uint32_t> events_;  ///< lane: what epoll watches for
  int extra_fd_ = -1;                  ///< in the epoll set
};

}  // namespace gdrbench::wire
