#include "topology/pci_path.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <regex>
#include <utility>
#include <vector>

#include "topology/root.hpp"

namespace gdrbench::topology {
namespace {

namespace fs = std::filesystem;

bool is_host_bridge(const std::string& text) {
  static const std::regex form("pci[0-9a-f]{4,8}:[0-9a-f]{2}");
  return std::regex_match(text, form);
}

fs::path function_folder(const std::string& address, const fs::path& root) {
  return root / "sys/bus/pci/devices" / address;
}

// Of a machine with one NUMA node, that: virtual machines mostly have one, and tell no function's. sysfs,
// since hwloc hides nodes that a container may not use. −1 where there are several, or none is seen.
int only_numa_node(const Root& root) {
  int only = -1;
  for (const std::string& name : root.list("sys/devices/system/node")) {
    constexpr std::string_view prefix = "node";
    if (!name.starts_with(prefix)) continue;
    int node = -1;
    const char* const end = name.data() + name.size();
    const auto [rest, fault] = std::from_chars(name.data() + prefix.size(), end, node);
    if (fault != std::errc{} || rest != end || node < 0) continue;
    if (only >= 0) return -1;
    only = node;
  }
  return only;
}

PciDistance between_host_bridges(int node, int other_node) {
  if (node < 0 || other_node < 0) return PciDistance::unknown;
  return node == other_node ? PciDistance::node : PciDistance::sys;
}

}  // namespace

PciDistance pci_distance(std::string_view name) {
  for (const auto& [candidate, known] : EnumNames<PciDistance>::names)
    if (known == name) return candidate;
  return PciDistance::unknown;
}

bool is_pci_address(const std::string& text) {
  static const std::regex form("[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]");
  return std::regex_match(text, form);
}

std::vector<std::string> pci_way(const std::string& address, const fs::path& root) {
  if (!is_pci_address(address)) return {};
  std::error_code absent;
  const fs::path top = fs::canonical(root, absent);
  if (absent) return {};
  const fs::path resolved = fs::canonical(function_folder(address, root), absent);
  if (absent) return {};
  std::vector<std::string> way;
  // Below the root alone, whose own folders may have any name; there the host bridge is not always the first
  // folder, and other drivers' folders begin with "pci" too.
  for (const fs::path& part : resolved.lexically_relative(top)) {
    if (part == "..") return {};
    if (!way.empty() || is_host_bridge(part)) way.push_back(part);
  }
  return way;
}

PciDistance distance_between(const PciPlace& here, const PciPlace& there) {
  if (here.way.empty() || there.way.empty()) return PciDistance::unknown;
  const auto [own, other] =
      std::mismatch(here.way.begin(), here.way.end(), there.way.begin(), there.way.end());
  const auto shared = own - here.way.begin();
  if (shared == 0) return between_host_bridges(here.numa_node, there.numa_node);
  if (shared == 1) return PciDistance::phb;  // the host bridge alone
  // Below one switch, each function has the switch's downstream port before it and nothing else.
  constexpr std::ptrdiff_t port_and_function = 2;
  const bool near = here.way.end() - own <= port_and_function && there.way.end() - other <= port_and_function;
  return near ? PciDistance::pix : PciDistance::pxb;
}

PciDistance distance_between(const std::string& address, const std::string& other, const fs::path& root) {
  return distance_between(PciPlace{pci_way(address, root), numa_node(address, root)},
                          PciPlace{pci_way(other, root), numa_node(other, root)});
}

int numa_node(const std::string& address, const fs::path& root) {
  if (!is_pci_address(address)) return -1;
  // A stream would wait for whoever writes into a pipe.
  const Root files(root);
  const std::optional<std::int64_t> node = files.number(function_folder(address, "") / "numa_node");
  if (node == -1) return only_numa_node(files);
  return node && *node >= 0 && *node <= std::numeric_limits<int>::max() ? static_cast<int>(*node) : -1;
}

std::string rdma_pci_address(const std::string& device, const fs::path& root) {
  std::error_code absent;
  // Of rdma_rxe `device` is missing, or is the network card's on old kernels; the copying is the CPU's.
  if (device.empty() || fs::exists(root / "sys/class/infiniband" / device / "parent", absent)) return "";
  const fs::path resolved = fs::canonical(root / "sys/class/infiniband" / device / "device", absent);
  const std::string name = absent ? "" : resolved.filename().string();
  return is_pci_address(name) ? name : "";
}

}  // namespace gdrbench::topology
