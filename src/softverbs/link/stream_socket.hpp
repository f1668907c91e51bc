#pragma once

#include <netinet/in.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace gdrbench::softverbs {

/// A file descriptor that is closed with its owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }

  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

// TCP sockets that take IPv6 addresses, v4-mapped ones included; where the kernel has no IPv6, IPv4 sockets
// that take the v4-mapped ones. Functions return false with errno set.

/// Not blocking; none, with errno set, where there are no more descriptors.
Descriptor open_stream_socket();
/// At once out, and noticed within about a minute when the remote's host is gone.
void set_stream_options(const Descriptor& socket);

bool bind_to(const Descriptor& socket, const sockaddr_in6& address);
/// False with EINPROGRESS is the normal case.
bool connect_to(const Descriptor& socket, const sockaddr_in6& address);

/// As in `[::1]:20480` or `192.0.2.1:20480`.
std::string to_string(const sockaddr_in6& address);
/// Name of an errno value.
std::string errno_name(int error);

}  // namespace gdrbench::softverbs
