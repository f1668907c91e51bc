#include "nic/device.hpp"

#include <endian.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

namespace gdrbench::softverbs {
namespace {

using Guid = std::array<std::uint8_t, 8>;

/// All zero when no interface that is up has a hardware address.
Guid guid_of_first_interface() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);

  Guid guid{};
  int lowest = std::numeric_limits<int>::max();
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_PACKET) continue;
    if ((entry->ifa_flags & IFF_UP) == 0 || (entry->ifa_flags & IFF_LOOPBACK) != 0) continue;
    sockaddr_ll link{};
    std::memcpy(&link, entry->ifa_addr, sizeof(link));
    const auto* mac = link.sll_addr;
    const bool has_address = link.sll_halen == 6 && std::any_of(mac, mac + 6, [](auto b) { return b != 0; });
    if (!has_address || link.sll_ifindex >= lowest) continue;
    lowest = link.sll_ifindex;
    guid = {mac[0], mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
  }
  return guid;
}

Guid guid_of_boot() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  std::erase(id, '-');
  Guid guid{};
  for (std::size_t i = 0; i < guid.size() && 2 * i + 2 <= id.size(); ++i)
    guid[i] = static_cast<std::uint8_t>(std::strtoul(id.substr(2 * i, 2).c_str(), nullptr, 16));
  return guid;
}

}  // namespace

__be64 node_guid() {
  static const __be64 guid = [] {
    Guid bytes = guid_of_first_interface();
    if (bytes == Guid{}) bytes = guid_of_boot();
    bytes[0] = static_cast<std::uint8_t>((bytes[0] | 0x02U) & ~0x01U);  // locally administered, not a group
    return std::bit_cast<__be64>(bytes);
  }();
  return guid;
}

ibv_device_attr device_attributes() {
  ibv_device_attr attributes{};
  std::strncpy(attributes.fw_ver, ("softverbs-" + std::string(SOFTVERBS_VERSION)).c_str(),
               sizeof(attributes.fw_ver) - 1);
  attributes.node_guid = attributes.sys_image_guid = node_guid();
  attributes.max_mr_size = std::numeric_limits<std::uint64_t>::max();
  attributes.page_size_cap = ~std::uint64_t{0xfff};  // any page size from 4 KiB up: it sees virtual addresses
  attributes.max_qp = max_queue_pairs;
  attributes.max_qp_wr = max_work_requests;
  attributes.device_cap_flags = IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE;
  attributes.max_sge = attributes.max_sge_rd = attributes.max_srq_sge = max_sge;
  attributes.max_cq = max_completion_queues;
  attributes.max_cqe = max_completions;
  attributes.max_mr = max_regions;
  attributes.max_pd = max_domains;
  attributes.max_qp_rd_atom = attributes.max_qp_init_rd_atom = max_rd_atomic;
  attributes.max_res_rd_atom = max_rd_atomic * max_queue_pairs;
  attributes.atomic_cap = IBV_ATOMIC_HCA;
  attributes.max_ah = max_address_handles;
  attributes.max_srq = max_shared_receive_queues;
  attributes.max_srq_wr = max_work_requests;
  attributes.max_pkeys = 1;
  // 4.096 µs × 2^15 = 134 ms: the answer may wait for the scheduler.
  attributes.local_ca_ack_delay = 15;
  attributes.phys_port_cnt = 1;
  return attributes;
}

ibv_device_attr_ex extended_device_attributes() {
  ibv_device_attr_ex attributes{};
  attributes.orig_attr = device_attributes();
  attributes.device_cap_flags_ex = attributes.orig_attr.device_cap_flags;
  attributes.pci_atomic_caps.fetch_add = IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP;
  attributes.pci_atomic_caps.compare_swap = IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP;
  attributes.phys_port_cnt_ex = 1;
  return attributes;
}

ibv_port_attr port_attributes(int gids) {
  constexpr std::uint8_t link_up = 5;  // PortPhysicalState of the InfiniBand specification, PortInfo
  ibv_port_attr attributes{};
  attributes.state = IBV_PORT_ACTIVE;
  attributes.max_mtu = attributes.active_mtu = port_mtu;
  attributes.gid_tbl_len = gids;
  attributes.port_cap_flags = IBV_PORT_IP_BASED_GIDS;
  static_assert(max_message_bytes <= std::numeric_limits<decltype(attributes.max_msg_sz)>::max());
  attributes.max_msg_sz = static_cast<std::uint32_t>(max_message_bytes);
  attributes.pkey_tbl_len = 1;
  attributes.max_vl_num = 1;
  // The lowest values that are valid, 1X at 2.5 Gb/s: what the host achieves is not known here, and nobody
  // shall take a rate of software for a link's.
  attributes.active_width = 1;
  attributes.active_speed = 1;
  attributes.phys_state = link_up;
  attributes.link_layer = IBV_LINK_LAYER_ETHERNET;
  attributes.flags = IBV_QPF_GRH_REQUIRED;
  return attributes;
}

namespace {

/// Kinds of addresses in the order of the table.
enum class Rank { ipv4, global, unique_local, link_local, loopback };

struct Candidate {
  Rank rank;
  bool no_carrier;
  GidEntry entry;

  auto order() const { return std::tuple(rank, no_carrier, entry.interface); }
};

Rank rank_of_ipv4(const in_addr& address) {
  const std::uint32_t host_order = ntohl(address.s_addr);
  if (host_order >> 24 == 127) return Rank::loopback;
  if (host_order >> 16 == 0xa9fe) return Rank::link_local;  // 169.254.0.0/16, RFC 3927
  return Rank::ipv4;
}

Rank rank_of_ipv6(const in6_addr& address) {
  if (IN6_IS_ADDR_LOOPBACK(&address)) return Rank::loopback;
  if (IN6_IS_ADDR_LINKLOCAL(&address)) return Rank::link_local;
  if ((address.s6_addr[0] & 0xfeU) == 0xfc) return Rank::unique_local;  // fc00::/7, RFC 4193
  return Rank::global;
}

std::optional<Candidate> candidate_of(const ifaddrs& address) {
  if (address.ifa_addr == nullptr || (address.ifa_flags & IFF_UP) == 0) return std::nullopt;
  Candidate candidate{Rank::loopback, (address.ifa_flags & IFF_RUNNING) == 0, {}};
  auto& raw = candidate.entry.gid.raw;
  if (address.ifa_addr->sa_family == AF_INET) {
    sockaddr_in ipv4{};
    std::memcpy(&ipv4, address.ifa_addr, sizeof(ipv4));
    candidate.rank = rank_of_ipv4(ipv4.sin_addr);
    raw[10] = raw[11] = 0xff;
    std::memcpy(raw + 12, &ipv4.sin_addr, 4);
  } else if (address.ifa_addr->sa_family == AF_INET6) {
    sockaddr_in6 ipv6{};
    std::memcpy(&ipv6, address.ifa_addr, sizeof(ipv6));
    candidate.rank = rank_of_ipv6(ipv6.sin6_addr);
    std::memcpy(raw, &ipv6.sin6_addr, 16);
  } else {
    return std::nullopt;
  }
  // An address may carry a label of its own, eth0:1; the interface is what stands before the colon.
  const std::string label = address.ifa_name;
  candidate.entry.interface_name = label.substr(0, label.find(':'));
  candidate.entry.interface = if_nametoindex(candidate.entry.interface_name.c_str());
  return candidate;
}

}  // namespace

std::vector<GidEntry> gids_of(const ifaddrs* addresses) {
  std::vector<Candidate> candidates;
  for (const ifaddrs* address = addresses; address != nullptr; address = address->ifa_next)
    if (auto candidate = candidate_of(*address)) candidates.push_back(std::move(*candidate));
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.order() < b.order(); });

  std::vector<GidEntry> table;
  for (auto& [rank, no_carrier, entry] : candidates) {
    if (table.size() == max_gids || (rank == Rank::loopback && candidates.front().rank != Rank::loopback))
      break;
    const bool known = std::any_of(table.begin(), table.end(), [&entry = entry](const GidEntry& other) {
      return other.interface == entry.interface && std::memcmp(&other.gid, &entry.gid, sizeof(ibv_gid)) == 0;
    });
    if (!known) table.push_back(std::move(entry));
  }
  return table;
}

std::vector<GidEntry> host_gids() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  return gids_of(list);
}

int find_gid(const std::vector<GidEntry>& table, const ibv_gid& gid) {
  const auto found = std::find_if(table.begin(), table.end(), [&gid](const GidEntry& entry) {
    return std::memcmp(&entry.gid, &gid, sizeof(gid)) == 0;
  });
  return found == table.end() ? -1 : static_cast<int>(found - table.begin());
}

}  // namespace gdrbench::softverbs
