#include <fmt/format.h>

#include "doctor/check_list.hpp"
#include "doctor/evidence.hpp"
#include "doctor/rdma_ports.hpp"

namespace gdrbench::doctor {
namespace {

constexpr int largest_path_mtu = 4096;

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "The port uses the largest path MTU that it can."},
    {"small_netdev_mtu", Verdict::warn,
     "The MTU of the netdev <netdev> leaves room for a path MTU of <path_mtu> bytes only, where the port "
     "could do 4096 (others report about 5 % of the bandwidth, and more packets a second for the same "
     "bytes).",
     "ip link set <netdev> mtu 4200, or 9000, on both ends and on the switches between them (1500 gives "
     "1024, 4200 gives 4096)",
     "where a switch on the way does not carry such frames, large messages are lost and end in RETRY_EXC"},
    {"below_netdev_mtu", Verdict::warn,
     "The active path MTU is smaller than the netdev <netdev> and the port allow: it was not taken over when "
     "the netdev's MTU was changed.",
     "ip link set <netdev> down; ip link set <netdev> up", "connections through the netdev are interrupted"},
    {"below_port_mtu", Verdict::warn,
     "The active MTU of the InfiniBand port is smaller than the port allows: the subnet manager or a switch "
     "limits it.",
     "in opensm's partitions.conf: mtu=5 (4096 bytes) for the partition, where all of its members can; then "
     "restart the subnet manager",
     "members of the partition that cannot do 4096 lose its multicast, and with it IPoIB"},
};

const PortAnswer* answer_for(const Facts& facts, const RdmaPort& port) {
  for (const RdmaAnswer& device : facts.answers.rdma)
    for (const PortAnswer& answer : device.ports)
      if (device.device == port.device && answer.number == port.number) return &answer;
  return nullptr;
}

Evidence answer_evidence(const RdmaPort& port, const PortAnswer& answer) {
  return {"ibv_query_port of " + port.subject(),
          fmt::format("active_mtu {}, max_mtu {}", answer.active_mtu, answer.most_mtu)};
}

Finding of_infiniband(const Check& self, const RdmaPort& port, const PortAnswer& answer) {
  const bool is_less = answer.active_mtu > 0 && answer.active_mtu < answer.most_mtu;
  return find(self, is_less ? "below_port_mtu" : "ok", port.subject(), {answer_evidence(port, answer)});
}

Finding of_roce(const Check& self, const topology::Root& root, const RdmaPort& port,
                const std::string& netdev, std::int64_t netdev_mtu, const PortAnswer* answer) {
  std::vector<Evidence> seen = {evidence(root, "sys/class/net/" + netdev + "/mtu")};
  if (answer != nullptr) seen.push_back(answer_evidence(port, *answer));
  const int most = answer != nullptr && answer->most_mtu > 0 ? answer->most_mtu : largest_path_mtu;
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

}  // namespace

const Check mtu_check = {
    .name = "mtu",
    .question = "Do active ports use the largest path MTU?",
    .looks_at =
        "/sys/class/net/*/mtu, ibv_query_port; a RoCE port takes the largest power of two up to its "
        "netdev's MTU less 96 bytes, from 256 to 4096",
    .layer = Layer::performance,
    .causes = causes,
    .run = run};

}  // namespace gdrbench::doctor
