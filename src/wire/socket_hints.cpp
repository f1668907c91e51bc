#include "wire/socket_hints.hpp"

#include <fmt/format.h>

#include <cerrno>

namespace gdrbench::wire {
namespace {

// Of any call that makes a descriptor.
std::string resource_hint(int errno_value) {
  switch (errno_value) {
    case EMFILE:
      return "raise ulimit -n";
    case ENFILE:
      return "the whole machine has too many files open: raise fs.file-max, or end what holds them";
    case ENOBUFS:
    case ENOMEM:
      return "the kernel has no memory left for sockets";
    default:
      return "";
  }
}

}  // namespace

std::string connect_hint(int errno_value, const std::string& address, unsigned port) {
  switch (errno_value) {
    case ECONNREFUSED:
      return fmt::format(
          "nothing listens on {}: start `gdrbench serve` there, or check the port; a server listens on "
          "127.0.0.1 only unless told --bind",
          address);
    case ETIMEDOUT:
      return fmt::format("the host is down, or a firewall drops TCP port {}", port);
    case EHOSTUNREACH:
      return "no route to that address, or no host answers for it: check the address, the routes of this "
             "host, "
             "and that the other is up (ping)";
    case ENETUNREACH:
      return "no route to that address: check it, and the routes of this host";
    case ENETDOWN:
      return "the network interface towards it is down: see `ip link`";
    case EADDRNOTAVAIL:
      return "no local port is free, or no local address leads there: see `ss -s` and `ip address`";
    case ECONNRESET:
      return fmt::format("something other than gdrbench may listen on port {}, or a firewall resets it",
                         port);
    case EACCES:
    case EPERM:
      return "a local firewall rule forbids it";
    case EAFNOSUPPORT:
      return "this host has no such kind of address (IPv6 may be disabled): give the other kind";
    default:
      return resource_hint(errno_value);
  }
}

std::string listen_hint(int errno_value) {
  switch (errno_value) {
    case EADDRINUSE:
      return "another server listens there already: stop it, or choose another --port";
    case EADDRNOTAVAIL:
      return "no interface of this host has that address: see `ip address`, or use --bind 0.0.0.0";
    case EACCES:
      return "ports below 1024 need privileges: choose another --port";
    case EAFNOSUPPORT:
      return "this host has no such kind of address (IPv6 may be disabled): give the other kind to --bind";
    default:
      return resource_hint(errno_value);
  }
}

std::string accept_hint(int errno_value) {
  return resource_hint(errno_value);
}

std::string lost_hint(int errno_value) {
  switch (errno_value) {
    case ECONNRESET:
    case EPIPE:
      return "the other end's process ended or was killed: look at its output";
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return "the other host is gone, or the network between: ping it";
    case ENETDOWN:
      return "a network interface went down: see `ip link`";
    default:
      return "";
  }
}

}  // namespace gdrbench::wire
