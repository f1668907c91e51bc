#include "topology/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "topology/hwloc_view.hpp"
#include "topology/pci_path.hpp"

namespace gdrbench::topology {
namespace {

constexpr std::uint16_t nvidia = 0x10de;
constexpr std::uint32_t display_controller =
    0x03;  // base classes of the PCI Code and ID Assignment specification
constexpr std::uint32_t network_controller = 0x02;

// "32.0 GT/s PCIe"; 0 for "Unknown".
double transfers_per_second(const Root& root, const std::string& path) {
  return std::strtod(root.read(path, 64).text.c_str(), nullptr) * 1e9;
}

int lanes(const Root& root, const std::string& path) {
  return static_cast<int>(root.number(path).value_or(0));
}

PciFunction read_function(const Root& root, const hwloc_obj_attr_u::hwloc_pcidev_attr_s& found) {
  PciFunction function;
  function.address = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", found.domain, found.bus, found.dev, found.func);
  const std::string folder = "sys/bus/pci/devices/" + function.address;
  function.class_code =
      static_cast<std::uint32_t>(root.number(folder + "/class").value_or(std::int64_t{found.class_id} << 8));
  function.vendor = found.vendor_id;
  function.device = found.device_id;
  function.driver = root.link_name(folder + "/driver");
  function.numa_node = numa_node(function.address, root.folder());
  function.way = pci_way(function.address, root.folder());
  function.link = {.transfers_per_second = transfers_per_second(root, folder + "/current_link_speed"),
                   .lanes = lanes(root, folder + "/current_link_width"),
                   .most_transfers_per_second = transfers_per_second(root, folder + "/max_link_speed"),
                   .most_lanes = lanes(root, folder + "/max_link_width")};
  return function;
}

// Names of the operating system's devices of one kind below a PCI function.
std::vector<std::string> os_devices(hwloc_obj_t function, hwloc_obj_osdev_type_t kind) {
  std::vector<std::string> names;
  for (hwloc_obj_t child = function->io_first_child; child != nullptr; child = child->next_sibling)
    if (child->type == HWLOC_OBJ_OS_DEVICE && child->attr->osdev.type == kind)
      names.emplace_back(child->name);
  std::sort(names.begin(), names.end());
  return names;
}

void sort_in(Machine& machine, const Root& root, hwloc_obj_t object) {
  PciFunction function = read_function(root, object->attr->pcidev);
  const std::uint32_t base_class = function.class_code >> 16;
  const std::vector<std::string> disks = os_devices(object, HWLOC_OBJ_OSDEV_BLOCK);
  std::vector<std::string> rdma = os_devices(object, HWLOC_OBJ_OSDEV_OPENFABRICS);
  if (function.vendor == nvidia && base_class == display_controller) {
    machine.gpus.push_back({std::move(function)});
  } else if (base_class == network_controller || !rdma.empty()) {
    machine.nics.push_back(
        {std::move(function), std::move(rdma), os_devices(object, HWLOC_OBJ_OSDEV_NETWORK)});
  } else if (!disks.empty() && disks.front().starts_with("nvme")) {
    machine.nvmes.push_back({std::move(function), disks});
  }
}

std::string list_of(hwloc_const_bitmap_t set) {
  char* text = nullptr;
  if (set == nullptr || hwloc_bitmap_list_asprintf(&text, set) < 0) return "";
  std::string list = text;
  std::free(text);
  return list;
}

template <class Device>
void sort_by_address(std::vector<Device>& devices) {
  std::sort(devices.begin(), devices.end(),
            [](const Device& a, const Device& b) { return a.pci.address < b.pci.address; });
}

}  // namespace

Machine read_machine(const Root& root) {
  Machine machine;
  const HwlocTopology topology = load_hwloc(root);
  if (!topology) return machine;
  for (hwloc_obj_t found = nullptr; (found = hwloc_get_next_pcidev(topology.get(), found)) != nullptr;)
    sort_in(machine, root, found);
  for (hwloc_obj_t node = nullptr;
       (node = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_NUMANODE, node)) != nullptr;)
    machine.numa_nodes.push_back({.number = static_cast<int>(node->os_index),
                                  .cores = list_of(node->cpuset),
                                  .memory_bytes = node->attr->numanode.local_memory});
  sort_by_address(machine.gpus);
  sort_by_address(machine.nics);
  sort_by_address(machine.nvmes);
  return machine;
}

}  // namespace gdrbench::topology
