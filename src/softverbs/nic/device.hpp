#pragma once

#include <ifaddrs.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <vector>

#include "link/frame.hpp"

/// What the device offers. Applications read these numbers, and what exceeds them is refused.
namespace gdrbench::softverbs {

constexpr char device_name[] = "softverbs0";
constexpr int max_queue_pairs = 4094;  ///< queue-pair numbers of one process, without the reserved 0 and 1
constexpr int max_work_requests = 1 << 14;
constexpr int max_sge = static_cast<int>(max_segments);
constexpr int max_completion_queues = 1 << 16;
constexpr int max_completions = 1 << 22;
constexpr int max_regions = 1 << 20;
constexpr int max_shared_receive_queues = 1 << 12;
constexpr int max_domains = 1 << 16;
constexpr int max_channels = 1 << 16;
constexpr int max_address_handles = 1 << 16;
constexpr int max_rd_atomic = 16;
constexpr std::uint32_t max_inline_bytes = 512;
constexpr ibv_mtu port_mtu = IBV_MTU_4096;
constexpr std::uint32_t datagram_bytes = 4096;  ///< a datagram is one packet of the port's MTU
constexpr std::uint32_t grh_bytes = 40;
constexpr std::uint16_t default_pkey = 0xffff;

constexpr int known_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                             IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_RELAXED_ORDERING;
/// Bits that a region may be asked for and that need no support (IBV_ACCESS_OPTIONAL_RANGE).
constexpr int optional_access = static_cast<int>(IBV_ACCESS_OPTIONAL_RANGE);

ibv_device_attr device_attributes();
/// With the extended attributes; what is not offered is zero.
ibv_device_attr_ex extended_device_attributes();
ibv_port_attr port_attributes(int gids);

/// GUID of the node, as EUI-64 marked as locally administered: from the lowest-numbered interface that is up
/// and has a hardware address, else from the host's boot id; so processes of a host (and network namespace)
/// agree.
__be64 node_guid();

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
