#include "topology/pci_path.hpp"

#include <algorithm>
#include <fstream>
#include <regex>
#include <utility>
#include <vector>

namespace gdrbench::topology {
namespace {

namespace fs = std::filesystem;

constexpr std::pair<PciDistance, std::string_view> names[] = {
    {PciDistance::pix, "PIX"},   {PciDistance::pxb, "PXB"}, {PciDistance::phb, "PHB"},
    {PciDistance::node, "NODE"}, {PciDistance::sys, "SYS"}, {PciDistance::unknown, "UNKNOWN"}};

bool is_pci_address(const std::string& text) {
  static const std::regex form("[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]");
  return std::regex_match(text, form);
}

fs::path function_folder(const std::string& address, const fs::path& root) {
  return root / "sys/bus/pci/devices" / address;
}

PciDistance between_host_bridges(const std::string& address, const std::string& other, const fs::path& root) {
  const int node = numa_node(address, root);
  const int other_node = numa_node(other, root);
  if (node < 0 || other_node < 0) return PciDistance::unknown;
  return node == other_node ? PciDistance::node : PciDistance::sys;
}

}  // namespace

std::string_view to_string(PciDistance distance) {
  for (const auto& [candidate, name] : names)
    if (candidate == distance) return name;
  return "UNKNOWN";
}

PciDistance pci_distance(std::string_view name) {
  for (const auto& [candidate, known] : names)
    if (known == name) return candidate;
  return PciDistance::unknown;
}

std::vector<std::string> pci_way(const std::string& address, const fs::path& root) {
  if (!is_pci_address(address)) return {};
  std::error_code absent;
  const fs::path resolved = fs::canonical(function_folder(address, root), absent);
  if (absent) return {};
  std::vector<std::string> way;
  for (const fs::path& part : resolved)
    if (!way.empty() || part.native().starts_with("pci")) way.push_back(part);
  return way;
}

PciDistance distance_between(const std::string& address, const std::string& other, const fs::path& root) {
  const std::vector<std::string> way = pci_way(address, root);
  const std::vector<std::string> other_way = pci_way(other, root);
  if (way.empty() || other_way.empty()) return PciDistance::unknown;
  const auto [here, there] = std::mismatch(way.begin(), way.end(), other_way.begin(), other_way.end());
  const auto shared = here - way.begin();
  if (shared == 0) return between_host_bridges(address, other, root);
  if (shared == 1) return PciDistance::phb;  // the host bridge alone
  // Below one switch, each function has the switch's downstream port before it and nothing else.
  constexpr std::ptrdiff_t port_and_function = 2;
  const bool near = way.end() - here <= port_and_function && other_way.end() - there <= port_and_function;
  return near ? PciDistance::pix : PciDistance::pxb;
}

int numa_node(const std::string& address, const fs::path& root) {
  int node = -1;
  if (!is_pci_address(address)) return node;
  std::ifstream file(function_folder(address, root) / "numa_node");
  return file >> node ? node : -1;
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
