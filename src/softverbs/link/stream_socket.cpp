#include "link/stream_socket.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace gdrbench::softverbs {
namespace {

void set_option(const Descriptor& socket, int level, int name, int value) {
  setsockopt(socket.get(), level, name, &value, sizeof value);
}

int family_of(const Descriptor& socket) {
  int family = AF_INET6;
  socklen_t size = sizeof family;
  getsockopt(socket.get(), SOL_SOCKET, SO_DOMAIN, &family, &size);
  return family;
}

sockaddr_in to_ipv4(const sockaddr_in6& address) {
  sockaddr_in mapped{};
  mapped.sin_family = AF_INET;
  mapped.sin_port = address.sin6_port;
  std::memcpy(&mapped.sin_addr, address.sin6_addr.s6_addr + 12, sizeof mapped.sin_addr);
  return mapped;
}

bool has_ipv4_form(const in6_addr& address) {
  return IN6_IS_ADDR_V4MAPPED(&address) || IN6_IS_ADDR_UNSPECIFIED(&address);
}

using AddressCall = int (*)(int, const sockaddr*, socklen_t);

bool call(AddressCall function, const Descriptor& socket, const sockaddr_in6& address) {
  if (family_of(socket) == AF_INET6) {
    return function(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  if (!has_ipv4_form(address.sin6_addr)) {
    errno = EAFNOSUPPORT;
    return false;
  }
  const sockaddr_in mapped = to_ipv4(address);
  return function(socket.get(), reinterpret_cast<const sockaddr*>(&mapped), sizeof mapped) == 0;
}

}  // namespace

Descriptor open_stream_socket() {
  constexpr int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  Descriptor dual(socket(AF_INET6, type, 0));
  if (!dual && errno == EAFNOSUPPORT) return Descriptor(socket(AF_INET, type, 0));
  if (dual) set_option(dual, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  return dual;
}

void set_stream_options(const Descriptor& socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 3);   // seconds
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 1);  // seconds
  // Long, since it also counts the time in which a remote takes nothing: stopped, or waiting for a receive.
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 60'000);
}

bool bind_to(const Descriptor& socket, const sockaddr_in6& address) {
  return call(::bind, socket, address);
}
bool connect_to(const Descriptor& socket, const sockaddr_in6& address) {
  return call(::connect, socket, address);
}

std::string to_string(const sockaddr_in6& address) {
  const std::string port = std::to_string(ntohs(address.sin6_port));
  char text[INET6_ADDRSTRLEN] = "?";
  if (IN6_IS_ADDR_V4MAPPED(&address.sin6_addr)) {
    inet_ntop(AF_INET, address.sin6_addr.s6_addr + 12, text, sizeof text);
    return std::string(text) + ":" + port;
  }
  inet_ntop(AF_INET6, &address.sin6_addr, text, sizeof text);
  return "[" + std::string(text) + "]:" + port;
}

std::string errno_name(int error) {
  const char* const name = strerrorname_np(error);
  return name == nullptr ? "errno " + std::to_string(error) : name;
}

}  // namespace gdrbench::softverbs
