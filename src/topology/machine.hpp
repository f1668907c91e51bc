#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "topology/pci_path.hpp"
#include "topology/pcie_link.hpp"
#include "topology/root.hpp"

namespace gdrbench::topology {

/// A function on the PCI buses.
struct PciFunction {
  std::string address;           ///< "0000:bb:00.0"
  std::uint32_t class_code = 0;  ///< 24 bits, 0x030200
  std::uint16_t vendor = 0, device = 0;
  std::string model;             ///< by libpci's list, else by NVIDIA's driver: "NVIDIA H200"; or empty
  std::string driver;            ///< "nvidia"; empty without one, and without sysfs
  int numa_node = -1;            ///< −1 where the kernel does not tell and there are several
  std::vector<std::string> way;  ///< host bridge "pci0000:b7", the bridges, the function; empty where hidden
  PcieLink link;                 ///< towards the CPU
  std::vector<Hop> hops;         ///< a link for each bridge and for the function, in the order of the way
  std::string cores;  ///< logical CPUs next to it by hwloc, "0-15,32-47"; all where nothing is told
};

/// Where it sits, for distance_between().
inline PciPlace place_of(const PciFunction& function) {
  return {function.way, function.numa_node};
}

struct Gpu {
  PciFunction pci;
};

/// A port of an RDMA device, as sysfs tells it.
struct RdmaPort {
  std::string device;  ///< "mlx5_0"
  int number = 1;
  std::string state;            ///< "ACTIVE", "DOWN", "INIT", "ARMED"; empty where it cannot be read
  std::string link_layer;       ///< "Ethernet", "InfiniBand"; empty where it cannot be read
  double bytes_per_second = 0;  ///< nominal rate; 0 where it cannot be read
  std::string netdev;           ///< "eth0"; empty without one
  bool is_active() const { return state == "ACTIVE"; }
};

/// A PCI function that is a NIC to the kernel's RDMA or network subsystem.
struct Nic {
  PciFunction pci;
  std::vector<std::string> rdma_devices;  ///< "mlx5_0"
  std::vector<std::string> netdevs;       ///< "eth0"
  std::vector<RdmaPort> ports;            ///< of all its RDMA devices
};

/// An RDMA device that no PCI function is behind: a driver's of the kernel (rxe, siw) or a library's.
struct SoftwareNic {
  std::string name;  ///< "rxe0"
  std::string kind;  ///< "soft-roce", "iWARP", "softverbs", or "unknown"
  std::vector<RdmaPort> ports;
};

struct Nvme {
  PciFunction pci;
  std::vector<std::string> disks;  ///< "nvme0n1"
};

struct NumaNode {
  int number = 0;
  std::string cores;               ///< logical CPUs, "0-15,32-47"
  std::uint64_t memory_bytes = 0;  ///< of a machine's only node all that the machine has
};

struct Machine {
  std::vector<Gpu> gpus;    ///< NVIDIA's, by PCI address: the order of nvidia-smi
  std::vector<Nic> nics;    ///< by PCI address
  std::vector<Nvme> nvmes;  ///< by PCI address
  std::vector<SoftwareNic> software_nics;
  std::vector<NumaNode> numa_nodes;
  std::string cores;      ///< all logical CPUs that may be used
  bool has_sysfs = true;  ///< false: nobody tells the functions' drivers, ways, links and ports
};

/// Found by hwloc, where there is a topology.xml in the root from that, and completed from sysfs. Never
/// throws; what cannot be read is missing.
Machine read_machine(const Root& root);

}  // namespace gdrbench::topology
