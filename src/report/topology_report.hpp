#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "topology/machine.hpp"

/// A machine's devices and what lies between them, for people and for programs.
namespace gdrbench::report {

/// A device as reports name it: "GPU0", "NIC3", "NVMe1", numbered by PCI address.
struct NamedFunction {
  std::string name;
  const topology::PciFunction* pci;
};
/// GPUs, NICs, NVMe devices; they live as long as the machine.
std::vector<NamedFunction> named_functions(const topology::Machine& machine);

/// From a device to a NUMA node's memory: node for its own, sys for others.
topology::PciDistance distance_to_node(const topology::PciFunction& function, const topology::NumaNode& node);

/// As docs/topology.schema.json says. `host` is empty where it is not known.
nlohmann::ordered_json topology_json(const topology::Machine& machine, const std::string& host);

/// Lists, a matrix with its legend, best pairs, folded to `width` columns; lines end in '\n'.
std::string topology_text(const topology::Machine& machine, const std::string& host, std::size_t width = 100);

}  // namespace gdrbench::report
