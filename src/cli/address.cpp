#include "cli/address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <charconv>

#include "gdrbench/error.hpp"
#include "gdrbench/session.hpp"

namespace gdrbench::cli {
namespace {

std::uint16_t parse_port(const std::string& text, const std::string& whole) {
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size() || port < 1 || port > 65535)
    throw UsageError(fmt::format("address '{}': '{}' is not a port; ports are 1 to 65535", whole, text));
  return static_cast<std::uint16_t>(port);
}

}  // namespace

HostPort parse_host(const std::string& text, std::uint16_t otherwise) {
  if (text.empty()) throw UsageError("the address of the server is empty; give a host name or an IP address");
  if (text.front() == '[') {
    const std::size_t close = text.find(']');
    if (close == std::string::npos || close == 1)
      throw UsageError(fmt::format("address '{}': an IPv6 address is written [ADDRESS]:PORT", text));
    const std::string rest = text.substr(close + 1);
    if (!rest.empty() && rest.front() != ':')
      throw UsageError(
          fmt::format("address '{}': unexpected '{}' after ']'; write [ADDRESS]:PORT", text, rest));
    return {text.substr(1, close - 1), rest.empty() ? otherwise : parse_port(rest.substr(1), text)};
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || text.find(':', colon + 1) != std::string::npos) return {text, otherwise};
  if (colon == 0) throw UsageError(fmt::format("address '{}': there is no host before ':'", text));
  return {text.substr(0, colon), parse_port(text.substr(colon + 1), text)};
}

HostPort server_address(const std::string& text, std::optional<int> port) {
  if (port && (*port < 1 || *port > 65535))
    throw UsageError(fmt::format("--port {}: ports are 1 to 65535", *port));
  HostPort address = parse_host(text, 0);
  if (address.port != 0 && port)
    throw UsageError(fmt::format("--port {}: '{}' names a port too; leave one of them out", *port, text));
  if (address.port == 0) address.port = static_cast<std::uint16_t>(port.value_or(default_port));
  return address;
}

bool is_loopback(const std::string& address) {
  if (address == "localhost") return true;
  in_addr v4{};
  if (inet_pton(AF_INET, address.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6{};
  return inet_pton(AF_INET6, address.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

}  // namespace gdrbench::cli
