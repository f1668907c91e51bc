#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "doctor/check_list.hpp"
#include "doctor/evidence.hpp"
#include "doctor/rdma_ports.hpp"

namespace gdrbench::doctor {
namespace {

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "The port is active."},
    {"netdev_down", Verdict::fail, "The port is down because its netdev <netdev> is not up.",
     "ip link set <netdev> up"},
    {"no_carrier", Verdict::fail,
     "The port is down: its netdev <netdev> is up and has no carrier, so there is no link to the switch.",
     "check cable, transceiver, and the switch's port (shut, other speed, other FEC); ethtool <netdev>"},
    {"no_link", Verdict::fail,
     "The port looks for a link and finds none (Polling): nothing that answers is at the other end of the "
     "cable.",
     "check cable, transceiver, and that the switch's port is enabled; mlxlink -d <device> tells more"},
    {"disabled", Verdict::fail, "The port is disabled.",
     "ip link set <netdev> up for Ethernet; ibportstate -C <device> -D 0 <port> enable for InfiniBand"},
    {"no_subnet_manager", Verdict::fail,
     "The InfiniBand port has its link and waits in INIT: no subnet manager has configured it.",
     "start one, at the switch or by systemctl start opensm on one node of the fabric; sminfo tells which "
     "one answers",
     "two subnet managers of equal priority on one fabric may fight"},
    {"not_active", Verdict::fail, "The port is not active, so no queue pair can be connected through it.",
     "rdma link show; ibstat <device>; a port that stays in ARMED waits for the subnet manager"},
    {"other_port_inactive", Verdict::info,
     "This port is not active; others are. The tool does not take it unless told to.", ""},
    {"narrow_link", Verdict::warn,
     "The InfiniBand link came up with one lane of four: a lane of cable or connector is bad.",
     "clean or replace cable and transceiver, or take the port down and up; mlxlink -d <device> shows the "
     "lanes"},
    {"slower_than_its_like", Verdict::info,
     "The link runs slower than that of another NIC of the same model here. It may be meant so.", ""},
    {"mixed_link_layers", Verdict::info,
     "Active ports here are of both link layers, Ethernet and InfiniBand: name the device (--device, "
     "--remote-device), so that both ends take the same kind.",
     ""},
    {"state_unreadable", Verdict::unknown, "The state of the port cannot be read.",
     "ibv_devinfo -d <device>; run the doctor where /sys is mounted whole"},
};

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

}  // namespace

const Check ports_check = {
    .name = "ports",
    .question = "Is a port of the RDMA devices active, at full width?",
    .looks_at =
        "/sys/class/infiniband/*/ports/*/{state,phys_state,link_layer,rate}, flags and carrier of "
        "the netdev",
    .layer = Layer::port,
    .causes = causes,
    .run = run};

}  // namespace gdrbench::doctor
