#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "topology/root.hpp"

namespace gdrbench::topology {

/// Speed of a PCIe link: what it was trained to, and what both of its ends could do. 0 where sysfs does not
/// tell.
struct PcieLink {
  double transfers_per_second = 0;  ///< of a lane: 32e9 for "32.0 GT/s PCIe"
  int lanes = 0;
  double most_transfers_per_second = 0;
  int most_lanes = 0;
};

/// A function on the PCI buses.
struct PciFunction {
  std::string address;           ///< "0000:bb:00.0"
  std::uint32_t class_code = 0;  ///< 24 bits, 0x030200
  std::uint16_t vendor = 0, device = 0;
  std::string model;             ///< by libpci's list, "H200 SXM"; empty where it has none
  std::string driver;            ///< "nvidia"; empty without one
  int numa_node = -1;            ///< −1 where the kernel does not tell
  std::vector<std::string> way;  ///< host bridge "pci0000:b7", the bridges, the function; empty where hidden
  PcieLink link;                 ///< towards the CPU
};

struct Gpu {
  PciFunction pci;
};

/// A PCI function that is a NIC to the kernel's RDMA or network subsystem.
struct Nic {
  PciFunction pci;
  std::vector<std::string> rdma_devices;  ///< "mlx5_0"
  std::vector<std::string> netdevs;       ///< "eth0"
};

struct Nvme {
  PciFunction pci;
  std::vector<std::string> disks;  ///< "nvme0n1"
};

struct NumaNode {
  int number = 0;
  std::string cores;  ///< logical CPUs, "0-15,32-47"
  std::uint64_t memory_bytes = 0;
};

struct Machine {
  std::vector<Gpu> gpus;    ///< NVIDIA's, by PCI address
  std::vector<Nic> nics;    ///< by PCI address
  std::vector<Nvme> nvmes;  ///< by PCI address
  std::vector<NumaNode> numa_nodes;
};

/// Found by hwloc, where there is a topology.xml in the root from that, and completed from sysfs. Never
/// throws; what cannot be read is missing.
Machine read_machine(const Root& root);

}  // namespace gdrbench::topology
