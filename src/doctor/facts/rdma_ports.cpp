#include "doctor/facts/rdma_ports.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <sstream>

#include "verbs/port.hpp"

namespace gdrbench::doctor {
namespace {

using topology::Root;

constexpr int max_ports = 255;  // the verbs count them in one byte

// "4: ACTIVE" → "ACTIVE".
std::string after_colon(const std::string& text) {
  const std::size_t colon = text.find(": ");
  return colon == std::string::npos ? "" : text.substr(colon + 2);
}

Transport transport_of(const Root& root, const std::string& device) {
  const std::string type = after_colon(root.read("sys/class/infiniband/" + device + "/node_type", 64).text);
  const bool emulated = verbs::is_emulated(device, root.folder());
  if (type == "RNIC") return emulated ? Transport::soft_iwarp : Transport::iwarp;
  if (type == "CA") return emulated ? Transport::soft_roce : Transport::infiniband;
  return Transport::other;
}

RdmaPort read_port(const Root& root, const std::string& device, int number, Transport transport) {
  RdmaPort port;
  port.device = device;
  port.number = number;
  port.transport = transport;
  const std::string folder = port.folder();
  port.state = after_colon(root.read(folder + "/state", 64).text);
  port.physical_state = after_colon(root.read(folder + "/phys_state", 64).text);
  port.link_layer = root.read(folder + "/link_layer", 64).text;
  // "100 Gb/sec (4X EDR)"
  if (std::sscanf(root.read(folder + "/rate", 64).text.c_str(), "%lf Gb/sec (%dX", &port.gigabits_per_second,
                  &port.lanes) < 2)
    port.lanes = 0;
  return port;
}

std::optional<verbs::GidBytes> gid_from(const std::string& text) {
  verbs::GidBytes gid{};
  if (inet_pton(AF_INET6, text.c_str(), gid.data()) != 1 || gid == verbs::GidBytes{}) return std::nullopt;
  return gid;
}

std::optional<verbs::GidType> type_from(const std::string& text, const std::string& link_layer) {
  if (text == "RoCE v2") return verbs::GidType::roce_v2;
  if (text != "IB/RoCE v1") return std::nullopt;
  return link_layer == "InfiniBand" ? verbs::GidType::infiniband : verbs::GidType::roce_v1;
}

// Empty for what can be no netdev's name, since texts quote it in commands.
std::string netdev_name(const topology::FileText& file) {
  constexpr std::size_t max_length = 15;  // IFNAMSIZ less the end
  const bool is_name =
      file.text.size() <= max_length && std::all_of(file.text.begin(), file.text.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 ||
               std::string_view("-_.@").find(static_cast<char>(c)) != std::string_view::npos;
      });
  return is_name ? file.text : "";
}

constexpr const char* route_head =
    "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT";

// Of linux/route.h.
constexpr std::uint32_t route_is_up = 0x1, route_has_gateway = 0x2, route_is_host = 0x4,
                        route_is_rejected = 0x200;

bool is_contiguous(std::uint32_t mask) {
  return std::countl_one(mask) == std::popcount(mask);
}

}  // namespace

std::string RdmaPort::folder() const {
  return fmt::format("sys/class/infiniband/{}/ports/{}", device, number);
}

std::string RdmaPort::subject() const {
  return fmt::format("{} port {}", device, number);
}

std::vector<RdmaPort> rdma_ports(const Root& root) {
  std::vector<RdmaPort> ports;
  for (const std::string& device : root.list("sys/class/infiniband")) {
    const Transport transport = transport_of(root, device);
    for (const std::string& name : root.list("sys/class/infiniband/" + device + "/ports")) {
      int number = 0;
      const auto [end, fault] = std::from_chars(name.data(), name.data() + name.size(), number);
      if (fault == std::errc{} && end == name.data() + name.size() && number > 0 && number <= max_ports)
        ports.push_back(read_port(root, device, number, transport));
    }
  }
  return ports;
}

std::vector<Gid> gid_table(const Root& root, const RdmaPort& port) {
  std::vector<Gid> table;
  const std::string folder = port.folder();
  for (const std::string& slot : root.list(folder + "/gids")) {
    const auto gid = gid_from(root.read(fmt::format("{}/gids/{}", folder, slot), 64).text);
    if (!gid) continue;
    const auto type =
        type_from(root.read(fmt::format("{}/gid_attrs/types/{}", folder, slot), 64).text, port.link_layer);
    int index = 0;
    const auto [end, fault] = std::from_chars(slot.data(), slot.data() + slot.size(), index);
    if (!type || fault != std::errc{} || end != slot.data() + slot.size()) continue;
    table.push_back(
        {.entry = {.gid = *gid, .type = *type, .index = index},
         .netdev = netdev_name(root.read(fmt::format("{}/gid_attrs/ndevs/{}", folder, slot), 64))});
  }
  return table;
}

std::optional<Gid> chosen_gid(const std::vector<Gid>& table) {
  std::vector<verbs::GidEntry> entries;
  entries.reserve(table.size());
  for (const Gid& gid : table) entries.push_back(gid.entry);
  const std::optional<int> index = verbs::choose_gid(entries);
  if (!index) return std::nullopt;
  return *std::find_if(table.begin(), table.end(),
                       [index](const Gid& gid) { return gid.entry.index == *index; });
}

std::string netdev_of(const Root& root, const RdmaPort& port) {
  if (const auto gid = chosen_gid(gid_table(root, port)); gid && !gid->netdev.empty()) return gid->netdev;
  // rdma_rxe names it itself.
  const std::string device = "sys/class/infiniband/" + port.device;
  if (std::string parent = netdev_name(root.read(device + "/parent", 64)); !parent.empty()) return parent;
  const std::vector<std::string> netdevs = root.list(device + "/device/net");
  for (const std::string& netdev : netdevs)
    if (root.number("sys/class/net/" + netdev + "/dev_port") == port.number - 1) return netdev;
  return netdevs.size() == 1 ? netdevs.front() : "";
}

int path_mtu(std::int64_t netdev_mtu, int overhead) {
  for (const int mtu : {4096, 2048, 1024, 512, 256})
    if (mtu + overhead <= netdev_mtu) return mtu;
  return 0;
}

Counters read_counters(const topology::Root& root) {
  // Milliseconds for which the kernel keeps values that it has read.
  constexpr std::string_view setting = "lifespan";
  Counters counters;
  for (const RdmaPort& port : rdma_ports(root))
    for (const std::string& folder : {port.folder() + "/hw_counters", port.folder() + "/counters"})
      for (const std::string& name : root.list(folder)) {
        if (name == setting) continue;
        if (const auto value = root.number(fmt::format("{}/{}", folder, name)); value && *value >= 0)
          counters[fmt::format("{}/{}/{}", port.device, port.number, name)] =
              static_cast<std::uint64_t>(*value);
      }
  return counters;
}

std::string to_string(const Subnet& subnet) {
  return fmt::format("{}.{}.{}.{}/{}", subnet.address >> 24, subnet.address >> 16 & 255,
                     subnet.address >> 8 & 255, subnet.address & 255, std::popcount(subnet.mask));
}

bool is_link_local(std::uint32_t address) {
  return address >> 16 == 0xa9fe;
}

std::vector<AttachedSubnet> attached_subnets(std::string_view route_table) {
  std::vector<AttachedSubnet> attached;
  std::istringstream lines{std::string(route_table)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string netdev, references, uses, metric;
    std::uint32_t destination = 0, gateway = 0, flags = 0, mask = 0;
    fields >> netdev >> std::hex >> destination >> gateway >> flags >> references >> uses >> metric >> mask;
    if (!fields) continue;  // the head, too
    // The kernel writes the bytes of the network as a number of the processor.
    const Subnet subnet{.address = ntohl(destination), .mask = ntohl(mask)};
    const bool is_subnet = subnet.mask != 0 && ~subnet.mask != 0 && is_contiguous(subnet.mask);
    if ((flags & route_is_up) != 0 &&
        (flags & (route_has_gateway | route_is_host | route_is_rejected)) == 0 && is_subnet)
      attached.push_back({std::move(netdev), subnet});
  }
  return attached;
}

std::string route_table(const std::vector<AttachedSubnet>& attached) {
  std::string text = route_head;
  for (const auto& [netdev, subnet] : attached)
    text += fmt::format("\n{}\t{:08X}\t00000000\t{:04X}\t0\t0\t0\t{:08X}\t0\t0\t0", netdev,
                        htonl(subnet.address), route_is_up, htonl(subnet.mask));
  return text;
}

}  // namespace gdrbench::doctor
