#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "doctor/check.hpp"
#include "doctor/checks/checks.hpp"
#include "doctor/facts/rdma_ports.hpp"

namespace gdrbench::doctor {
namespace {

namespace arp {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr const char* settings =
    "sysctl -w net.ipv4.conf.all.arp_ignore=1; sysctl -w net.ipv4.conf.all.arp_announce=2; sysctl -w "
    "net.ipv4.conf.all.rp_filter=2; the same names and values into a file of /etc/sysctl.d, to keep them; on "
    "the "
    "peers: ip neigh flush all; or give each port a subnet of its own";
constexpr const char* settings_risk =
    "every interface of the machine then answers for its own addresses alone, also where another's answer "
    "was "
    "relied on";

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "Each port answers ARP for its own addresses only."},
    {"flux", Verdict::warn,
     "Several ports have addresses in one IPv4 subnet, <subnet>, and the kernel may answer or send ARP "
     "requests on one port for the address of another (ARP flux): RoCE packets then go to the wrong port, "
     "which drops them, or RDMA CM rejects the connection.",
     settings, settings_risk},
    {"strict_rp_filter", Verdict::warn,
     "Several ports have addresses in one IPv4 subnet, <subnet>, and rp_filter is 1 (strict): the kernel "
     "ignores ARP requests that arrive on another port than its route to the sender uses, so remotes find "
     "the addresses of one port only, unless source rules (ip rule) give each port its own route.",
     settings, settings_risk},
    {"unknown", Verdict::unknown,
     "Several ports have addresses in one IPv4 subnet, <subnet>; whether one may answer ARP for the address "
     "of another (ARP flux) cannot be seen.",
     "sysctl -a | grep -E 'arp_ignore|arp_announce|rp_filter' (should be 1, 2, and 0 or 2)"},
};

constexpr Check check = {
    .name = "arp",
    .question = "Does each RoCE port answer ARP for its own IPv4 addresses only?",
    .looks_at =
        "IPv4 GIDs of active ports and their netdevs, /proc/net/route, arp_ignore, arp_announce, arp_filter "
        "and rp_filter in /proc/sys/net/ipv4/conf (the larger value of all and of the interface counts)",
    .layer = Layer::port,
    .causes = causes,
    .run = run};

std::string file_of(const std::string& interface, const char* setting) {
  return fmt::format("proc/sys/net/ipv4/conf/{}/{}", interface, setting);
}

// What counts for an interface: of these settings the larger of its own and that of all. One alone says
// little.
std::optional<std::int64_t> effective(const topology::Root& root, const std::string& netdev,
                                      const char* setting) {
  const auto all = root.number(file_of("all", setting)), own = root.number(file_of(netdev, setting));
  return all && own ? std::optional(std::max(*all, *own)) : std::nullopt;
}

// "/proc/sys/net/ipv4/conf/{all,eth0,eth1}/arp_ignore": "0, 0, 0"
Evidence setting_evidence(const topology::Root& root, const std::set<std::string>& netdevs,
                          const char* setting) {
  std::vector<std::string> interfaces = {"all"}, values;
  interfaces.insert(interfaces.end(), netdevs.begin(), netdevs.end());
  for (const std::string& interface : interfaces)
    values.push_back(evidence(root, file_of(interface, setting)).value);
  return {"/" + file_of(fmt::format("{{{}}}", fmt::join(interfaces, ",")), setting),
          fmt::format("{}", fmt::join(values, ", "))};
}

std::string_view cause_of(const topology::Root& root, const std::string& netdev) {
  const auto ignore = effective(root, netdev, "arp_ignore"),
             announce = effective(root, netdev, "arp_announce");
  // With arp_filter an interface answers where the route to who asks leaves by it.
  const auto filters_by = [&](const std::string& interface) {
    return root.number(file_of(interface, "arp_filter")).value_or(0) > 0;
  };
  const bool filters = filters_by("all") || filters_by(netdev);
  if (!ignore || !announce) return "unknown";
  constexpr std::int64_t of_any_global_address = 3;
  const bool answers_for_others = (*ignore == 0 || *ignore == of_any_global_address) && !filters;
  // 1 keeps to the subnet, in which the others' addresses are too.
  if (answers_for_others || *announce < 2) return "flux";
  return effective(root, netdev, "rp_filter") == 1 ? "strict_rp_filter" : "ok";
}

Finding of_subnet(const Check& self, const topology::Root& root, const Subnet& subnet,
                  const std::set<std::string>& netdevs) {
  std::string_view worst = "ok";
  // One port that answers for another is enough.
  for (const std::string_view cause : {"strict_rp_filter", "unknown", "flux"})
    if (std::any_of(netdevs.begin(), netdevs.end(),
                    [&](const std::string& netdev) { return cause_of(root, netdev) == cause; }))
      worst = cause;
  const std::string names = fmt::format("{}", fmt::join(netdevs, ", "));
  std::vector<Evidence> seen = {
      {fmt::format("/{}", route_file), fmt::format("{} by {}", to_string(subnet), names)}};
  for (const char* setting : {"arp_ignore", "arp_announce", "rp_filter"})
    seen.push_back(setting_evidence(root, netdevs, setting));
  return named(find(self, worst, names, std::move(seen)), "<subnet>", to_string(subnet));
}

// Netdevs of active RoCE ports with an IPv4 address, and whether that is a link-local one: the only relation
// of addresses to subnets that a recording keeps.
std::set<std::pair<std::string, bool>> addressed_netdevs(const topology::Root& root) {
  std::set<std::pair<std::string, bool>> netdevs;
  for (const RdmaPort& port : rdma_ports(root)) {
    if (!port.is_active() || !port.is_roce()) continue;
    for (const Gid& gid : gid_table(root, port)) {
      const verbs::GidBytes& bytes = gid.entry.gid;
      if (!gid.netdev.empty() && verbs::is_ipv4_mapped(bytes))
        netdevs.emplace(gid.netdev, bytes[12] == 169 && bytes[13] == 254);
    }
  }
  return netdevs;
}

std::vector<Finding> run(const Check& self, const Facts& facts) {
  const auto addressed = addressed_netdevs(facts.root);
  std::map<Subnet, std::set<std::string>> netdevs_of;
  std::set<std::string> all;
  for (const auto& [netdev, subnet] : attached_subnets(facts.root.read(route_file, max_route_bytes).text)) {
    if (!addressed.contains({netdev, is_link_local(subnet.address)})) continue;
    netdevs_of[subnet].insert(netdev);
    all.insert(netdev);
  }
  if (all.size() < 2) return {};
  std::vector<Finding> findings;
  for (const auto& [subnet, netdevs] : netdevs_of)
    if (netdevs.size() > 1) findings.push_back(of_subnet(self, facts.root, subnet, netdevs));
  if (findings.empty())
    findings.push_back(
        find(self, "ok", "", {{fmt::format("/{}", route_file), "each port in subnets of its own"}}));
  return findings;
}

}  // namespace arp

}  // namespace

CheckList arp_checks() {
  static constexpr const Check* list[] = {&arp::check};
  return list;
}

}  // namespace gdrbench::doctor
