#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "verbs/device.hpp"

namespace gdrbench::verbs {

/// An IP address of an RDMA port, as rdma_cm needs it.
struct IpAddress {
  std::string ip;           ///< "10.0.0.5", "fe80::1"
  std::uint32_t scope = 0;  ///< interface index of a link-local address
};

/// The GID itself on Ethernet; on InfiniBand the address of the device's IPoIB interface. Throws Unavailable
/// when that has none.
IpAddress ip_address(const Device& device, const GidEntry& gid);

/// Throws Error when `ip` is no numeric address.
sockaddr_storage socket_address(const IpAddress& address, std::uint16_t port);

}  // namespace gdrbench::verbs
