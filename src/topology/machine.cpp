#include "topology/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "topology/cores.hpp"
#include "topology/hwloc_view.hpp"
#include "topology/pci_function.hpp"
#include "topology/rdma_ports.hpp"

namespace gdrbench::topology {
namespace {

constexpr std::uint16_t nvidia = 0x10de;
// Of the PCI Code and ID Assignment specification: base class, or base class and subclass.
constexpr std::uint32_t vga_controller = 0x0300, display_controller_3d = 0x0302;
constexpr std::uint32_t network_controller = 0x02;
constexpr std::uint32_t nvm_controller = 0x0108;

// As far as hwloc's tree tells: the only one of the part of the machine that the device is next to.
int hwloc_node(hwloc_obj_t ancestor) {
  const hwloc_const_nodeset_t nodes = ancestor->complete_nodeset;
  return hwloc_bitmap_weight(nodes) == 1 ? hwloc_bitmap_first(nodes) : -1;
}

PciFunction read_function(const Root& root, hwloc_topology_t topology, hwloc_obj_t object) {
  const hwloc_obj_attr_u::hwloc_pcidev_attr_s& found = object->attr->pcidev;
  PciFunction function;
  function.address = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", found.domain, found.bus, found.dev, found.func);
  const std::string folder = "sys/bus/pci/devices/" + function.address;
  function.class_code =
      static_cast<std::uint32_t>(root.number(folder + "/class").value_or(std::int64_t{found.class_id} << 8));
  function.vendor = found.vendor_id;
  function.device = found.device_id;
  function.model = pci_model(found.vendor_id, found.device_id);
  if (function.model.empty() && function.vendor == nvidia)
    function.model = driver_model(root, function.address);
  function.driver = root.link_name(folder + "/driver");
  const hwloc_obj_t ancestor = hwloc_get_non_io_ancestor_obj(topology, object);
  function.numa_node = root.exists("sys") ? numa_node(function.address, root.folder()) : hwloc_node(ancestor);
  function.way = pci_way(function.address, root.folder());
  for (const std::string& part : function.way)
    if (is_pci_address(part)) function.hops.push_back({part, read_link(root, part)});
  function.link = function.hops.empty() ? read_link(root, function.address) : function.hops.back().link;
  function.cores = core_list(ancestor->cpuset);
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

void sort_in(Machine& machine, const Root& root, hwloc_topology_t topology, hwloc_obj_t object) {
  const hwloc_obj_attr_u::hwloc_pcidev_attr_s& found = object->attr->pcidev;
  const std::vector<std::string> disks = os_devices(object, HWLOC_OBJ_OSDEV_BLOCK);
  std::vector<std::string> rdma = os_devices(object, HWLOC_OBJ_OSDEV_OPENFABRICS);
  std::erase_if(rdma, [&](const std::string& device) { return is_soft_roce(root, device); });
  if (found.vendor_id == nvidia &&
      (found.class_id == vga_controller || found.class_id == display_controller_3d)) {
    machine.gpus.push_back({read_function(root, topology, object)});
  } else if (found.class_id >> 8 == network_controller || !rdma.empty()) {
    Nic nic{.pci = read_function(root, topology, object),
            .rdma_devices = std::move(rdma),
            .netdevs = os_devices(object, HWLOC_OBJ_OSDEV_NETWORK),
            .ports = {}};
    for (const std::string& device : nic.rdma_devices)
      for (RdmaPort& port : read_ports(root, device)) nic.ports.push_back(std::move(port));
    machine.nics.push_back(std::move(nic));
  } else if (found.class_id == nvm_controller || (!disks.empty() && disks.front().starts_with("nvme"))) {
    machine.nvmes.push_back({read_function(root, topology, object), disks});
  }
}

// Of /proc/meminfo; 0 where it does not tell.
std::uint64_t memory_of_machine(const Root& root) {
  constexpr std::string_view label = "MemTotal:";
  constexpr std::uint64_t max_kibibytes = std::uint64_t{1} << 50;  // a recorded file may hold anything
  const std::string text = root.read("proc/meminfo").text;
  if (!text.starts_with(label)) return 0;
  const std::size_t digits = text.find_first_not_of(' ', label.size());
  std::uint64_t kibibytes = 0;
  if (digits != std::string::npos)
    std::from_chars(text.data() + digits, text.data() + text.size(), kibibytes);
  return kibibytes <= max_kibibytes ? kibibytes << 10 : 0;
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
  machine.has_sysfs = root.exists("sys");
  for (hwloc_obj_t found = nullptr; (found = hwloc_get_next_pcidev(topology.get(), found)) != nullptr;)
    sort_in(machine, root, topology.get(), found);
  for (hwloc_obj_t node = nullptr;
       (node = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_NUMANODE, node)) != nullptr;)
    machine.numa_nodes.push_back({.number = static_cast<int>(node->os_index),
                                  .cores = core_list(node->cpuset),
                                  .memory_bytes = node->attr->numanode.local_memory});
  // Memory that is plugged in later may belong to no node. Nodes that a container may not use count as well.
  if (hwloc_bitmap_weight(hwloc_topology_get_complete_nodeset(topology.get())) == 1)
    for (NumaNode& node : machine.numa_nodes)
      node.memory_bytes = std::max(node.memory_bytes, memory_of_machine(root));
  sort_by_address(machine.gpus);
  sort_by_address(machine.nics);
  sort_by_address(machine.nvmes);
  machine.software_nics = read_software_nics(root, machine.nics);
  machine.cores = core_list(hwloc_topology_get_topology_cpuset(topology.get()));
  return machine;
}

}  // namespace gdrbench::topology
