#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "doctor/facts/facts.hpp"
#include "synthetic/sysfs.hpp"

/// Synthetic machines, as the kernel, CUDA and libibverbs would show them. Healthy ones are in healthy.hpp; a
/// fault is one or two changes to one of them.
namespace gdrbench::synthetic {

/// "pci0000:b7", every bridge, and the function: sysfs's folders from the host bridge on.
using Way = std::vector<std::string>;

struct Function {
  Way way;
  PciConfig config;
  int numa_node = 0;
  std::string driver;
  std::string link_speed = "32.0 GT/s PCIe";
  int link_width = 16;
};

struct Port {
  std::string state = "4: ACTIVE";
  std::string physical_state = "5: LinkUp";
  std::string link_layer = "Ethernet";
  std::string rate = "400 Gb/sec (4X NDR)";
};

class Machine {
 public:
  Tree tree;
  doctor::Answers answers;

  /// sysfs's folder of a PCI function that was added.
  std::string folder_of(const std::string& address) const;
  /// Of all functions that were added.
  std::vector<std::string> addresses() const;

  /// What the function's configuration space says from now on.
  void change_config(const std::string& address, const std::function<void(PciConfig&)>& change);
  /// Of every function users without rights see the first 64 bytes alone.
  void hide_capabilities();
  /// What the link of the function, at both of its ends, was trained to.
  void train_link(const std::string& address, const std::string& speed, int width);
  void add_to_iommu_group(const std::string& address, int group, const std::string& type);
  /// A further line of the kernel log.
  void log(const std::string& line);

  void add_numa_node(int node, const std::string& cores);
  /// Adds the function; its bridges too, where they are not there yet, with ACS off.
  void add_function(const Function& function);
  /// An NVIDIA GPU with 256 MiB of registers and `bar1_bytes` of memory on its BARs, and CUDA's answer for
  /// it.
  void add_gpu(const Way& way, int numa_node, std::uint64_t bar1_bytes = std::uint64_t{256} << 30);
  /// A ConnectX-7 with one port, its netdev and device node, and libibverbs' answer for it. The first has the
  /// address 10.0.0.5 in 10.0.0.0/24, the next 10.0.1.5 in 10.0.1.0/24.
  void add_nic(const Way& way, int numa_node, const std::string& rdma_device, const std::string& netdev);
  /// A device of rdma_rxe ("1: CA") or siw ("4: RNIC") on a netdev without hardware, and libibverbs' answer.
  void add_soft_device(const std::string& rdma_device, const std::string& node_type,
                       const std::string& netdev, int netdev_mtu);
  void add_gid(const std::string& rdma_device, int index, const std::string& gid, const std::string& type,
               const std::string& netdev);
  /// To a subnet that the netdev is attached to, as /proc/net/route writes both: "0000000A", "00FFFFFF".
  void add_route(const std::string& netdev, const std::string& destination, const std::string& mask);
  /// NVIDIA's driver; its open kernel modules or the proprietary ones.
  void add_nvidia_driver(bool open);
  void add_module(const std::string& name);
  void remove_module(const std::string& name);

  doctor::GpuAnswer& gpu(const std::string& address);
  doctor::RdmaAnswer& rdma(const std::string& device);

  /// As `gdrbench doctor --snapshot` takes it.
  void write(const std::filesystem::path& folder) const;

 private:
  std::vector<std::pair<std::string, std::string>> folders_;  // address, folder
  std::map<std::string, PciConfig> configs_;                  // by address
  int uverbs_ = 0;
};

}  // namespace gdrbench::synthetic
