#pragma once

#include <ifaddrs.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gdrbench::softverbs {

constexpr std::size_t max_gids = 128;

/// One GID of the port: an address of this host, RoCE v2.
struct GidEntry {
  ibv_gid gid{};                ///< IPv4 as ::ffff:a.b.c.d
  std::uint32_t interface = 0;  ///< index of the network interface; scope of a link-local address
  std::string interface_name;
};

/// The addresses of interfaces that are up: IPv4 first, then global and unique local IPv6, then link-local
/// ones; loopback addresses only where there is nothing else. Interfaces with a carrier come before those
/// without. At most `max_gids`; none when the kernel does not tell the addresses.
std::vector<GidEntry> host_gids();
/// The same for a list as getifaddrs gives it.
std::vector<GidEntry> gids_of(const ifaddrs* addresses);

/// Index of a GID in a table; −1: it is not there.
int find_gid(const std::vector<GidEntry>& table, const ibv_gid& gid);

}  // namespace gdrbench::softverbs
