#pragma once

#include <hwloc.h>

#include <memory>
#include <string>

#include "topology/root.hpp"

namespace gdrbench::topology {

struct DestroyTopology {
  void operator()(hwloc_topology* topology) const noexcept { hwloc_topology_destroy(topology); }
};
using HwlocTopology = std::unique_ptr<hwloc_topology, DestroyTopology>;

/// hwloc's picture of the root, all I/O devices kept; null where hwloc can make none. A recorded root's
/// topology.xml is taken before its /sys. Not for several threads at once: hwloc takes the root from the
/// environment.
HwlocTopology load_hwloc(const Root& root);

/// The same as hwloc's XML document; empty where hwloc can make none.
std::string hwloc_xml(const Root& root);

}  // namespace gdrbench::topology
