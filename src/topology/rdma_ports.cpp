#include "topology/rdma_ports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace gdrbench::topology {
namespace {

std::string folder_of(const std::string& device) {
  return "sys/class/infiniband/" + device;
}

// "ACTIVE" of "4: ACTIVE".
std::string after_number(const std::string& text) {
  const auto colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

// "400 Gb/sec (4X NDR)".
double rate_bytes_per_second(const std::string& text) {
  constexpr double fastest_gigabits = 1e6;
  const double gigabits = std::strtod(text.c_str(), nullptr);
  return gigabits > 0 && gigabits < fastest_gigabits ? gigabits * 1e9 / 8 : 0;
}

// The one that the port's GIDs belong to; slots that are empty cannot be read.
std::string netdev_of_gids(const Root& root, const std::string& port_folder) {
  constexpr int slots_tried = 8;
  for (int slot = 0; slot < slots_tried; ++slot)
    if (const FileText name = root.read(fmt::format("{}/gid_attrs/ndevs/{}", port_folder, slot), 64);
        !name.text.empty())
      return name.text;
  return "";
}

std::string netdev_of(const Root& root, const std::string& device, int port) {
  if (std::string name = netdev_of_gids(root, fmt::format("{}/ports/{}", folder_of(device), port));
      !name.empty())
    return name;
  if (const FileText parent = root.read(folder_of(device) + "/parent", 64); parent.present())
    return parent.text;
  const std::string netdevs = folder_of(device) + "/device/net";
  const std::vector<std::string> netdev_names = root.list(netdevs);
  for (const std::string& name : netdev_names)
    if (root.number(fmt::format("{}/{}/dev_port", netdevs, name)) == port - 1) return name;
  return netdev_names.size() == 1 ? netdev_names.front() : "";
}

std::string kind_of(const Root& root, const std::string& device) {
  const std::string node_type = root.read(folder_of(device) + "/node_type", 64).text;
  if (node_type.ends_with("RNIC")) return "iWARP";
  if (node_type.ends_with("CA")) return "soft-roce";
  return "unknown";
}

}  // namespace

bool is_soft_roce(const Root& root, const std::string& device) {
  return root.exists(folder_of(device) + "/parent");
}

std::vector<RdmaPort> read_ports(const Root& root, const std::string& device) {
  std::vector<RdmaPort> ports;
  for (const std::string& name : root.list(folder_of(device) + "/ports")) {
    int number = 0;
    const auto [end, fault] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (fault != std::errc{} || end != name.data() + name.size()) continue;
    const std::string folder = fmt::format("{}/ports/{}", folder_of(device), name);
    ports.push_back({.device = device,
                     .number = number,
                     .state = after_number(root.read(folder + "/state", 64).text),
                     .link_layer = root.read(folder + "/link_layer", 64).text,
                     .bytes_per_second = rate_bytes_per_second(root.read(folder + "/rate", 64).text),
                     .netdev = netdev_of(root, device, number)});
  }
  std::sort(ports.begin(), ports.end(),
            [](const RdmaPort& a, const RdmaPort& b) { return a.number < b.number; });
  return ports;
}

std::vector<SoftwareNic> read_software_nics(const Root& root, const std::vector<Nic>& nics) {
  const auto has_function = [&](const std::string& device) {
    return std::any_of(nics.begin(), nics.end(), [&](const Nic& nic) {
      return std::find(nic.rdma_devices.begin(), nic.rdma_devices.end(), device) != nic.rdma_devices.end();
    });
  };
  std::vector<SoftwareNic> found;
  for (const std::string& device : root.list("sys/class/infiniband"))
    if (!has_function(device))
      found.push_back({.name = device, .kind = kind_of(root, device), .ports = read_ports(root, device)});
  return found;
}

}  // namespace gdrbench::topology
