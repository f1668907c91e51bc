#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/system.hpp"

namespace gdrbench::wire {

/// A connected TCP socket, non-blocking, TCP_NODELAY, close-on-exec.
class Socket {
 public:
  Socket() = default;
  explicit Socket(FileDescriptor fd) : fd_(std::move(fd)) {}
  int fd() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }

  /// Sends or receives all of it before the deadline; throws PeerLost on close, reset or timeout. `tried`
  /// names the exchange for the error text.
  void send_all(std::span<const std::byte> data, Deadline deadline, const std::string& tried);
  void receive_all(std::span<std::byte> data, Deadline deadline, const std::string& tried);

  /// "10.0.0.5:7471", "[fe80::1%eth0]:7471".
  std::string remote_address() const;
  std::string local_address() const;
  /// The address part alone, without port; for rdma_cm.
  std::string local_host() const;
  std::string remote_host() const;

 private:
  FileDescriptor fd_;
};

struct Address {
  std::string host;
  std::uint16_t port;
};

/// Resolves and connects; throws Error that names host, port, what came back (ECONNREFUSED …) and what to
/// check.
Socket connect_tcp(const Address& address, Deadline deadline);

/// A listening socket. Port 0 asks the kernel for one.
class Listener {
 public:
  explicit Listener(const Address& address);
  std::uint16_t port() const { return port_; }
  int fd() const { return fd_.get(); }
  /// The next connection, or an empty socket when the deadline passes or a signal arrives. Throws
  /// SystemError when this process or host has no descriptor or memory for it; it stays queued.
  Socket accept(Deadline deadline);

 private:
  FileDescriptor fd_;
  std::uint16_t port_ = 0;
};

/// Waits until `fd` has one of poll(2)'s `events` or the deadline passes; false on timeout. Throws
/// Interrupted on a termination signal.
bool wait_for(int fd, short events, Deadline deadline);

/// What usually causes an errno value of a socket and what to try; "" where nothing is known. `address` is
/// "10.0.0.2:7471", `port` its port.
std::string connect_hint(int errno_value, const std::string& address, unsigned port);
std::string listen_hint(int errno_value);
std::string accept_hint(int errno_value);
/// Of a connection that was there.
std::string lost_hint(int errno_value);

}  // namespace gdrbench::wire
