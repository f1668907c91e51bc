#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gdrbench::cli {

struct HostPort {
  std::string host;
  std::uint16_t port;
};

/// "node-b", "node-b:7472", "10.0.0.5", "fe80::1%eth0", "[fe80::1%eth0]:7472". Throws UsageError.
HostPort parse_host(const std::string& text, std::uint16_t otherwise);

/// The server at `text` as above; `port` is the value of --port, and the default port is taken where neither
/// names one. Throws UsageError, also where both do.
HostPort server_address(const std::string& text, std::optional<int> port);

/// Whether only this machine can connect to the address: 127.0.0.0/8, ::1, localhost.
bool is_loopback(const std::string& address);

}  // namespace gdrbench::cli
