#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "gdrbench/kinds.hpp"

/// Where devices sit on the machine's PCI buses, as sysfs tells it. `root` stands in for "/" in the tests.
namespace gdrbench::topology {

using gdrbench::PciDistance;
using gdrbench::to_string;
/// By its name; unknown for any other text.
PciDistance pci_distance(std::string_view name);

/// Where a function sits: its way from the host bridge, as pci_way() gives it, and its NUMA node.
struct PciPlace {
  std::vector<std::string> way;
  int numa_node = -1;
};
PciDistance distance_between(const PciPlace& here, const PciPlace& there);

/// Between two functions, "0000:bb:00.0". Unknown when one of them is not in sysfs, an empty address for one.
PciDistance distance_between(const std::string& address, const std::string& other,
                             const std::filesystem::path& root = "/");

/// The host bridge ("pci0000:b7"), every bridge on the way, and the function itself; empty when unknown, and
/// where sysfs leads out of the root.
std::vector<std::string> pci_way(const std::string& address, const std::filesystem::path& root = "/");

/// NUMA node of the function, which on a machine with one node is that; −1 where the kernel does not tell.
int numa_node(const std::string& address, const std::filesystem::path& root = "/");

/// Whether the text is a function's address as sysfs writes it.
bool is_pci_address(const std::string& text);

/// PCI address of an RDMA device, "0000:bc:00.0"; empty for software devices, which have none.
std::string rdma_pci_address(const std::string& device, const std::filesystem::path& root = "/");

}  // namespace gdrbench::topology
