#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "doctor/check.hpp"
#include "doctor/checks/checks.hpp"
#include "doctor/facts/rdma_ports.hpp"

namespace gdrbench::doctor {
namespace {

namespace ports {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "The port is active."},
    {"netdev_down", Verdict::fail, "The port is down because its netdev <netdev> is not up.",
     "ip link set <netdev> up"},
    {"no_carrier", Verdict::fail,
     "The port is down: its netdev <netdev> is up and has no carrier, so there is no link to the switch.",
     "check cable, transceiver, and the switch port (shut down, other speed, other FEC); ethtool <netdev>"},
    {"no_link", Verdict::fail,
     "The port is polling and finds no link: nothing responds at the other end of the cable.",
     "check cable, transceiver, and that the switch port is enabled; mlxlink -d <device> tells more"},
    {"disabled", Verdict::fail, "The port is disabled.",
     "ip link set <netdev> up for Ethernet; ibportstate -C <device> -D 0 <port> enable for InfiniBand"},
    {"no_subnet_manager", Verdict::fail,
     "The InfiniBand port has its link and stays in INIT: no subnet manager has configured it.",
     "start one, on the switch or by systemctl start opensm on one node of the fabric; sminfo tells which "
     "one responds",
     "two subnet managers of equal priority on one fabric may conflict"},
    {"not_active", Verdict::fail, "The port is not active, so no queue pair can be connected through it.",
     "rdma link show; ibstat <device>; a port that stays in ARMED waits for the subnet manager"},
    {"other_port_inactive", Verdict::info,
     "This port is not active; others are. gdrbench does not use it unless told to.", ""},
    {"narrow_link", Verdict::warn,
     "The InfiniBand link came up with one lane of four: a lane of the cable or connector is bad.",
     "clean or replace cable and transceiver, or take the port down and up; mlxlink -d <device> shows the "
     "lanes"},
    {"slower_than_its_like", Verdict::info,
     "The link is slower than that of another NIC of the same model here, which may be intended.", ""},
    {"mixed_link_layers", Verdict::info,
     "Active ports here have both link layers, Ethernet and InfiniBand: name the device (--device, "
     "--remote-device), so that both ends use the same kind.",
     ""},
    {"state_unreadable", Verdict::unknown, "The port state cannot be read.",
     "ibv_devinfo -d <device>; run the doctor where all of /sys is mounted"},
};

constexpr Check check = {
    .name = "ports",
    .question = "Is a port of the RDMA devices active, at full width?",
    .looks_at =
        "/sys/class/infiniband/*/ports/*/{state,phys_state,link_layer,rate}, flags and carrier of the netdev",
    .layer = Layer::port,
    .causes = causes,
    .run = run};

Evidence port_evidence(const topology::Root& root, const RdmaPort& port, const char* attribute) {
  return evidence(root, port.folder() + "/" + attribute);
}

bool netdev_is_up(const topology::Root& root, const std::string& netdev) {
  constexpr std::int64_t up = 1;  // IFF_UP
  return (root.number("sys/class/net/" + netdev + "/flags").value_or(up) & up) != 0;
}

// mlx5 calls a RoCE port Disabled whatever its netdev lacks, so the netdev is asked first.
std::string_view why_inactive(const topology::Root& root, const RdmaPort& port, const std::string& netdev) {
  const bool ethernet = port.link_layer == "Ethernet";
  if (ethernet && !netdev.empty() && root.exists("sys/class/net/" + netdev)) {
    if (!netdev_is_up(root, netdev)) return "netdev_down";
    if (root.number("sys/class/net/" + netdev + "/carrier") == 0) return "no_carrier";
  }
  if (port.physical_state == "Polling") return "no_link";
  if (port.physical_state == "Disabled") return "disabled";
  if (!ethernet && port.state == "INIT") return "no_subnet_manager";
  return "not_active";
}

Finding inactive(const Check& self, const topology::Root& root, const RdmaPort& port,
                 bool another_is_active) {
  std::vector<Evidence> seen = {port_evidence(root, port, "state"), port_evidence(root, port, "phys_state")};
  if (another_is_active) return find(self, "other_port_inactive", port.subject(), std::move(seen));
  const std::string netdev = port.link_layer == "Ethernet" ? netdev_of(root, port) : "";
  if (!netdev.empty()) {
    seen.push_back(evidence(root, "sys/class/net/" + netdev + "/flags"));
    seen.push_back(evidence(root, "sys/class/net/" + netdev + "/carrier"));
  }
  Finding finding = find(self, why_inactive(root, port, netdev), port.subject(), std::move(seen));
  finding = named(std::move(finding), "<port>", std::to_string(port.number));
  return netdev.empty() ? finding : named(std::move(finding), "<netdev>", netdev);
}

// What ports of one model and link layer have in common; empty where sysfs does not tell.
std::string model_of(const topology::Root& root, const RdmaPort& port) {
  const std::string folder = "sys/class/infiniband/" + port.device + "/device/";
  const std::string vendor = root.read(folder + "vendor", 16).text;
  return vendor.empty() ? "" : vendor + root.read(folder + "device", 16).text + port.link_layer;
}

using FastestOfModel = std::map<std::string, const RdmaPort*>;

FastestOfModel fastest_ports(const topology::Root& root, const std::vector<RdmaPort>& ports) {
  FastestOfModel fastest;
  for (const RdmaPort& port : ports) {
    if (!port.is_active()) continue;
    const RdmaPort*& best = fastest[model_of(root, port)];
    if (best == nullptr || port.gigabits_per_second > best->gigabits_per_second) best = &port;
  }
  fastest.erase("");
  return fastest;
}

Finding active(const Check& self, const topology::Root& root, const RdmaPort& port,
               const FastestOfModel& fastest) {
  std::vector<Evidence> seen = {port_evidence(root, port, "state"), port_evidence(root, port, "rate")};
  if (port.link_layer == "InfiniBand" && port.lanes == 1)
    return find(self, "narrow_link", port.subject(), std::move(seen));
  const auto other = fastest.find(model_of(root, port));
  if (other == fastest.end() || port.gigabits_per_second <= 0 ||
      other->second->gigabits_per_second <= port.gigabits_per_second)
    return find(self, "ok", port.subject(), std::move(seen));
  seen.push_back(port_evidence(root, *other->second, "rate"));
  return find(self, "slower_than_its_like", port.subject(), std::move(seen));
}

std::vector<Finding> run(const Check& self, const Facts& facts) {
  const topology::Root& root = facts.root;
  const std::vector<RdmaPort> ports = rdma_ports(root);
  const bool any_active = std::any_of(ports.begin(), ports.end(), std::mem_fn(&RdmaPort::is_active));
  std::vector<Finding> findings;
  std::set<std::string> link_layers;
  const FastestOfModel fastest = fastest_ports(root, ports);
  for (const RdmaPort& port : ports) {
    if (port.is_active()) link_layers.insert(port.link_layer);
    Finding finding = port.is_active()     ? active(self, root, port, fastest)
                      : port.state.empty() ? find(self, "state_unreadable", port.subject(),
                                                  {port_evidence(root, port, "state")})
                                           : inactive(self, root, port, any_active);
    findings.push_back(named(std::move(finding), "<device>", port.device));
  }
  if (link_layers.contains("Ethernet") && link_layers.contains("InfiniBand"))
    findings.push_back(find(self, "mixed_link_layers", "", {}));
  return findings;
}

}  // namespace ports

namespace gids {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "The port has a GID that other nodes can reach."},
    {"no_gid", Verdict::fail,
     "The port is active and its GID table is empty, so it has no address: its netdev <netdev> has no IP "
     "address, or is in another network namespace.",
     "ip address add <address>/<length> dev <netdev>; ip link set <netdev> up"},
    {"only_link_local", Verdict::warn,
     "The port has only link-local GIDs: they reach no other subnet, and even on one the neighbour is often "
     "not resolved (ETIMEDOUT in the transition to RTR).",
     "ip address add <address>/<length> dev <netdev>, on both ends from one subnet or with a route between "
     "them; private addresses (RFC 1918) will do"},
    {"only_roce_v1", Verdict::warn,
     "The port has only RoCE v1 GIDs: they are not routable, and a remote that uses RoCE v2 does not respond "
     "to them.",
     "update firmware and driver of the NIC; mlx4: options mlx4_core roce_mode=2 in /etc/modprobe.d, then "
     "reload it",
     "a reload of the driver ends all connections through the NIC"},
    {"netdev_down", Verdict::fail,
     "The netdev of the GID that gdrbench would use, <netdev>, is down: nothing is sent from or received at "
     "its address.",
     "ip link set <netdev> up; or choose a GID of another netdev by --gid-index"},
    {"netdev_elsewhere", Verdict::warn,
     "The netdev of the GID, <netdev>, is not in this network namespace: the kernel may be unable to resolve "
     "the remote's address from here (ETIMEDOUT or ENODEV in the transition to RTR).",
     "give the container the host's network (docker run --network host, hostNetwork: true) or move the "
     "netdev into it"},
};

constexpr Check check = {
    .name = "gids",
    .question = "Does each active port have a GID that a remote can reach?",
    .looks_at =
        "/sys/class/infiniband/*/ports/*/{gids,gid_attrs}, /sys/class/net/*/operstate; in the order RoCE v2 "
        "with IPv4, global IPv6, unique-local, link-local, then RoCE v1",
    .layer = Layer::port,
    .causes = causes,
    .run = run};

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

}  // namespace gids

namespace mtu {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr int max_path_mtu = 4096;

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "The port uses the largest path MTU it supports."},
    {"small_netdev_mtu", Verdict::warn,
     "The MTU of the netdev <netdev> allows a path MTU of <path_mtu> bytes only, while the port supports "
     "4096 (others report about 5 % of the bandwidth, and more packets a second for the same bytes).",
     "ip link set <netdev> mtu 4200, or 9000, on both ends and on the switches between them (1500 gives "
     "1024, 4200 gives 4096)",
     "if a switch on the path does not carry such frames, large messages are lost and end in RETRY_EXC"},
    {"below_netdev_mtu", Verdict::warn,
     "The active path MTU is smaller than the netdev <netdev> and the port allow: it was not updated when "
     "the netdev's MTU was changed.",
     "ip link set <netdev> down; ip link set <netdev> up", "connections through the netdev are interrupted"},
    {"below_port_mtu", Verdict::warn,
     "The active MTU of the InfiniBand port is smaller than the port supports: the subnet manager or a "
     "switch limits it.",
     "in opensm's partitions.conf: mtu=5 (4096 bytes) for the partition, if all of its members support it; "
     "then restart the subnet manager",
     "members of the partition that do not support 4096 lose its multicast, and with it IPoIB"},
};

constexpr Check check = {.name = "mtu",
                         .question = "Do active ports use the largest path MTU?",
                         .looks_at =
                             "/sys/class/net/*/mtu, ibv_query_port; a RoCE port uses the largest power of "
                             "two up to its netdev's MTU less 96 bytes, from 256 to 4096",
                         .layer = Layer::performance,
                         .causes = causes,
                         .run = run};

const PortAnswer* answer_for(const Facts& facts, const RdmaPort& port) {
  for (const RdmaAnswer& device : facts.answers.rdma)
    for (const PortAnswer& answer : device.ports)
      if (device.device == port.device && answer.number == port.number) return &answer;
  return nullptr;
}

Evidence answer_evidence(const RdmaPort& port, const PortAnswer& answer) {
  return {"ibv_query_port of " + port.subject(),
          fmt::format("active_mtu {}, max_mtu {}", answer.active_mtu, answer.max_mtu)};
}

Finding of_infiniband(const Check& self, const RdmaPort& port, const PortAnswer& answer) {
  const bool is_less = answer.active_mtu > 0 && answer.active_mtu < answer.max_mtu;
  return find(self, is_less ? "below_port_mtu" : "ok", port.subject(), {answer_evidence(port, answer)});
}

Finding of_roce(const Check& self, const topology::Root& root, const RdmaPort& port,
                const std::string& netdev, std::int64_t netdev_mtu, const PortAnswer* answer) {
  std::vector<Evidence> seen = {evidence(root, "sys/class/net/" + netdev + "/mtu")};
  if (answer != nullptr) seen.push_back(answer_evidence(port, *answer));
  const int most = answer != nullptr && answer->max_mtu > 0 ? answer->max_mtu : max_path_mtu;
  const int possible = path_mtu(netdev_mtu, hardware_overhead_bytes);
  const char* cause = "ok";
  if (possible < most)
    cause = "small_netdev_mtu";
  else if (answer != nullptr && answer->active_mtu > 0 && answer->active_mtu < most)
    cause = "below_netdev_mtu";
  return named(named(find(self, cause, port.subject(), std::move(seen)), "<netdev>", netdev), "<path_mtu>",
               std::to_string(possible));
}

std::vector<Finding> run(const Check& self, const Facts& facts) {
  const topology::Root& root = facts.root;
  std::vector<Finding> findings;
  for (const RdmaPort& port : rdma_ports(root)) {
    // Of soft-RoCE its own check tells.
    if (!port.is_active() || port.transport != Transport::infiniband) continue;
    const PortAnswer* const answer = answer_for(facts, port);
    if (!port.is_roce()) {
      if (answer != nullptr) findings.push_back(of_infiniband(self, port, *answer));
      continue;
    }
    const std::string netdev = netdev_of(root, port);
    const auto mtu = root.number("sys/class/net/" + netdev + "/mtu");
    if (netdev.empty() || !mtu) continue;
    findings.push_back(of_roce(self, root, port, netdev, *mtu, answer));
  }
  return findings;
}

}  // namespace mtu

}  // namespace

CheckList ports_checks() {
  static constexpr const Check* list[] = {&ports::check, &gids::check, &mtu::check};
  return list;
}

}  // namespace gdrbench::doctor
