#include <fmt/format.h>

#include <algorithm>

#include "doctor/check_list.hpp"
#include "doctor/evidence.hpp"
#include "doctor/rdma_ports.hpp"

namespace gdrbench::doctor {
namespace {

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "The port has a GID that other nodes reach."},
    {"no_gid", Verdict::fail,
     "The port is active and its GID table is empty, so it has no address: its netdev <netdev> has no IP "
     "address, or is in another network namespace.",
     "ip address add <address>/<length> dev <netdev>; ip link set <netdev> up"},
    {"only_link_local", Verdict::warn,
     "The port has no GID beside link-local ones: they reach no other subnet, and even on one the neighbour "
     "is often not resolved (ETIMEDOUT on the way to RTR).",
     "ip address add <address>/<length> dev <netdev>, on both ends from one subnet or with a route between "
     "them; private addresses (RFC 1918) will do"},
    {"only_roce_v1", Verdict::warn,
     "The port offers RoCE v1 GIDs alone: they cross no router, and a peer that uses RoCE v2 does not answer "
     "them.",
     "update firmware and driver of the NIC; mlx4: options mlx4_core roce_mode=2 in /etc/modprobe.d, then "
     "load it again",
     "loading the driver again ends all connections through the NIC"},
    {"netdev_down", Verdict::fail,
     "The netdev of the GID that the tool would use, <netdev>, is down: nothing is sent or answered for its "
     "address.",
     "ip link set <netdev> up; or choose a GID of another netdev by --gid-index"},
    {"netdev_elsewhere", Verdict::warn,
     "The netdev of the GID, <netdev>, is not in this network namespace: the kernel may be unable to resolve "
     "the peer's address from here (ETIMEDOUT or ENODEV on the way to RTR).",
     "give the container the host's network (docker run --network host, hostNetwork: true) or move the "
     "netdev into it"},
};

// "index 3: 10.0.0.5, RoCE v2, eth0"
Evidence gid_evidence(const RdmaPort& port, const Gid& gid) {
  const std::string folder = "/" + port.folder();
  const char* const type = gid.entry.type == verbs::GidType::roce_v2   ? "RoCE v2"
                           : gid.entry.type == verbs::GidType::roce_v1 ? "RoCE v1"
                                                                       : "InfiniBand";
  return {fmt::format("{}/gids/{}", folder, gid.entry.index),
          fmt::format("{}, {}{}", verbs::to_ip(gid.entry.gid), type,
                      gid.netdev.empty() ? "" : ", netdev " + gid.netdev)};
}

bool netdev_is_down(const topology::Root& root, const std::string& netdev) {
  const std::string state = root.read("sys/class/net/" + netdev + "/operstate", 32).text;
  return state == "down" || state == "lowerlayerdown" || state == "notpresent";
}

std::string_view cause_of(const topology::Root& root, const RdmaPort& port, const Gid& gid) {
  if (!port.is_roce()) return "ok";
  if (!gid.netdev.empty() && root.exists("sys/class/net")) {
    if (!root.exists("sys/class/net/" + gid.netdev)) return "netdev_elsewhere";
    if (netdev_is_down(root, gid.netdev)) return "netdev_down";
  }
  if (gid.entry.type == verbs::GidType::roce_v1) return "only_roce_v1";
  return verbs::is_link_local(gid.entry.gid) ? "only_link_local" : "ok";
}

std::vector<Finding> run(const Check& self, const Facts& facts) {
  const topology::Root& root = facts.root;
  std::vector<Finding> findings;
  for (const RdmaPort& port : rdma_ports(root)) {
    const bool has_gids = port.is_roce() || port.link_layer == "InfiniBand";
    // What a port lacks that is down is the other check's to say.
    if (!port.is_active() || !has_gids) continue;
    const auto gid = chosen_gid(gid_table(root, port));
    const std::string netdev = gid && !gid->netdev.empty() ? gid->netdev : netdev_of(root, port);
    Finding finding =
        gid ? find(self, cause_of(root, port, *gid), port.subject(), {gid_evidence(port, *gid)})
            : find(self, "no_gid", port.subject(), {{"/" + port.folder() + "/gids", "only empty slots"}});
    if (gid && !gid->netdev.empty())
      finding.evidence.push_back(evidence(root, "sys/class/net/" + gid->netdev + "/operstate"));
    findings.push_back(netdev.empty() ? finding : named(std::move(finding), "<netdev>", netdev));
  }
  return findings;
}

}  // namespace

const Check gids_check = {
    .name = "gids",
    .question = "Does each active port have a GID that a peer reaches?",
    .looks_at =
        "/sys/class/infiniband/*/ports/*/{gids,gid_attrs}, /sys/class/net/*/operstate; in the order "
        "RoCE v2 with IPv4, global IPv6, unique-local, link-local, then RoCE v1",
    .layer = Layer::port,
    .causes = causes,
    .run = run};

}  // namespace gdrbench::doctor
