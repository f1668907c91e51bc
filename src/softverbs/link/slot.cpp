#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "link/handshake.hpp"
#include "link/stream_socket.hpp"

namespace gdrbench::softverbs {
namespace {

// Errors of one port, not of the whole range.
bool is_taken(int error) {
  return error == EADDRINUSE || error == EACCES;
}

[[noreturn]] void fail(int error, const std::string& tried) {
  throw std::system_error(error, std::generic_category(), "softverbs: " + tried);
}

}  // namespace

std::uint16_t first_port() {
  const char* const value = std::getenv("GDRBENCH_SOFTVERBS_PORT");
  if (value == nullptr) return default_first_port;
  constexpr std::uint32_t last = 65536 - slots;
  const char* const end = value + std::strlen(value);
  std::uint32_t port = 0;
  const auto parsed = std::from_chars(value, end, port);
  if (parsed.ec != std::errc() || parsed.ptr != end || port == 0 || port > last) {
    throw std::invalid_argument("GDRBENCH_SOFTVERBS_PORT=" + std::string(value) +
                                ": expected the first of 4096 ports, 1 to " + std::to_string(last));
  }
  return std::uint16_t(port);
}

sockaddr_in6 address_of(const ibv_gid& gid, std::uint32_t slot, std::uint32_t scope_id) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(std::uint16_t(first_port() + slot));
  std::memcpy(&address.sin6_addr, gid.raw, sizeof address.sin6_addr);
  if (IN6_IS_ADDR_LINKLOCAL(&address.sin6_addr)) address.sin6_scope_id = scope_id;
  return address;
}

ListeningSlot claim_slot() {
  const std::uint16_t first = first_port();
  for (std::uint32_t slot = 0; slot < slots; ++slot) {
    Descriptor socket = open_stream_socket();
    if (!socket) fail(errno, "socket");
    // Connections of an earlier owner of the port that are in TIME_WAIT do not keep it taken; a listener
    // does.
    const int yes = 1;
    setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(std::uint16_t(first + slot));
    if (bind_to(socket, any) && listen(socket.get(), SOMAXCONN) == 0) return {std::move(socket), slot};
    if (!is_taken(errno)) fail(errno, "listen on port " + std::to_string(first + slot));
  }
  fail(EADDRINUSE, "listen on a port from " + std::to_string(first) + " to " +
                       std::to_string(first + slots - 1) +
                       ": all are taken; set GDRBENCH_SOFTVERBS_PORT to another range on both ends");
}

}  // namespace gdrbench::softverbs
