#include "nic/gid_table.hpp"

#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <tuple>

namespace gdrbench::softverbs {
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
