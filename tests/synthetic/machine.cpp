#include "synthetic/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace gdrbench::synthetic {
namespace {

namespace fs = std::filesystem;

constexpr std::uint16_t nvidia = 0x10de, mellanox = 0x15b3, bridge_vendor = 0x1000;

std::string joined(const Way& way, std::size_t parts) {
  std::string path = "sys/devices";
  for (std::size_t i = 0; i < parts; ++i) path += "/" + way[i];
  return path;
}

std::vector<int> numbers_in(const std::string& list) {
  std::vector<int> numbers;
  int first = 0, last = 0;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const std::string range = list.substr(at, end - at);
    const int fields = std::sscanf(range.c_str(), "%d-%d", &first, &last);
    for (int n = first; n <= (fields == 2 ? last : first); ++n) numbers.push_back(n);
    at = end + 1;
  }
  return numbers;
}

}  // namespace

std::string Machine::folder_of(const std::string& address) const {
  for (const auto& [known, folder] : folders_)
    if (known == address) return folder;
  throw std::logic_error("no PCI function " + address);
}

std::vector<std::string> Machine::addresses() const {
  std::vector<std::string> all;
  for (const auto& [address, config] : configs_) all.push_back(address);
  return all;
}

void Machine::change_config(const std::string& address, const std::function<void(PciConfig&)>& change) {
  change(configs_.at(address));
  tree.raw(folder_of(address) + "/config", config_space(configs_.at(address)));
}

void Machine::hide_capabilities() {
  constexpr std::size_t header_bytes = 64;
  for (const auto& [address, config] : configs_)
    tree.raw(folder_of(address) + "/config", config_space(config).substr(0, header_bytes));
}

void Machine::train_link(const std::string& address, const std::string& speed, int width) {
  const std::string folder = folder_of(address);
  const std::string above = fs::path(folder).parent_path();
  for (const std::string& end : {folder, above}) {
    if (!tree.contains(end + "/class")) continue;
    tree.file(end + "/current_link_speed", speed);
    tree.file(end + "/current_link_width", std::to_string(width));
  }
}

void Machine::add_to_iommu_group(const std::string& address, int group, const std::string& type) {
  const std::string folder = fmt::format("sys/kernel/iommu_groups/{}", group);
  tree.file(folder + "/type", type);
  tree.link(folder_of(address) + "/iommu_group", folder);
}

void Machine::log(const std::string& line) {
  answers.kernel_log = answers.kernel_log.value_or("") + line + "\n";
}

void Machine::add_numa_node(int node, const std::string& cores) {
  const std::string folder = fmt::format("sys/devices/system/node/node{}", node);
  tree.file(folder + "/cpulist", cores);
  tree.file(folder + "/meminfo", fmt::format("Node {} MemTotal:       131072000 kB", node));
  tree.file(folder + "/distance", node == 0 ? "10 21" : "21 10");
  for (const int core : numbers_in(cores)) {
    const std::string cpu = fmt::format("sys/devices/system/cpu/cpu{}", core);
    tree.file(cpu + "/topology/physical_package_id", std::to_string(node));
    tree.file(cpu + "/topology/core_id", std::to_string(core));
    tree.file(cpu + "/topology/thread_siblings", fmt::format("{:x}", 1u << core));
    tree.file(cpu + "/topology/thread_siblings_list", std::to_string(core));
    tree.file(cpu + "/cpufreq/scaling_governor", "performance");
    // hwloc reads maps, not lists.
    tree.link(fmt::format("{}/cpu{}", folder, core), cpu);
  }
  std::uint32_t map = 0;
  for (const int core : numbers_in(cores)) map |= 1u << core;
  tree.file(folder + "/cpumap", fmt::format("{:08x}", map));
  for (const int core : numbers_in(cores)) {
    const std::string topology = fmt::format("sys/devices/system/cpu/cpu{}/topology", core);
    tree.file(topology + "/core_siblings", fmt::format("{:08x}", map));
    tree.file(topology + "/core_siblings_list", cores);
  }
}

void Machine::add_function(const Function& function) {
  for (std::size_t parts = 2; parts <= function.way.size(); ++parts) {
    const std::string& address = function.way[parts - 1];
    const std::string folder = joined(function.way, parts);
    if (tree.contains(folder + "/class")) continue;
    const bool is_last = parts == function.way.size();
    PciConfig config = function.config;
    if (!is_last)
      config = {.vendor = bridge_vendor,
                .device = 0xc030,
                .class_code = 0x060400,
                .is_bridge = true,
                .acs_control = 0};
    tree.file(folder + "/class", fmt::format("{:#08x}", config.class_code));
    tree.file(folder + "/vendor", fmt::format("{:#06x}", config.vendor));
    tree.file(folder + "/device", fmt::format("{:#06x}", config.device));
    tree.file(folder + "/subsystem_vendor", fmt::format("{:#06x}", config.vendor));
    tree.file(folder + "/subsystem_device", "0x0000");
    tree.file(folder + "/revision", "0xa1");
    tree.file(folder + "/irq", "0");
    tree.file(folder + "/numa_node", std::to_string(function.numa_node));
    const std::string cores =
        tree.text(fmt::format("sys/devices/system/node/node{}/cpulist", function.numa_node));
    tree.file(folder + "/local_cpulist", cores);
    std::uint32_t map = 0;
    for (const int core : numbers_in(cores)) map |= 1u << core;
    tree.file(folder + "/local_cpus", fmt::format("{:08x}", map));
    for (const char* which : {"current", "max"}) {
      tree.file(fmt::format("{}/{}_link_speed", folder, which), function.link_speed);
      tree.file(fmt::format("{}/{}_link_width", folder, which), std::to_string(function.link_width));
    }
    tree.raw(folder + "/config", config_space(config));
    configs_[address] = config;
    const std::string driver = is_last ? function.driver : "pcieport";
    if (!driver.empty()) {
      tree.folder("sys/bus/pci/drivers/" + driver);
      tree.link(folder + "/driver", "sys/bus/pci/drivers/" + driver);
    }
    tree.link("sys/bus/pci/devices/" + address, folder);
    folders_.emplace_back(address, folder);
  }
}

void Machine::add_gpu(const Way& way, int numa_node, std::uint64_t bar1_bytes) {
  add_function({.way = way,
                .config = {.vendor = nvidia, .device = 0x2335, .class_code = 0x030200},
                .numa_node = numa_node,
                .driver = "nvidia"});
  const std::uint64_t registers = 0xd0000000, bar1 = std::uint64_t{0x20} << 40;
  tree.file(folder_of(way.back()) + "/resource",
            fmt::format("{:#018x} {:#018x} 0x0000000000040200\n{:#018x} {:#018x} 0x000000000014220c",
                        registers, registers + 0xffffff, bar1, bar1 + bar1_bytes - 1));
  tree.raw(fmt::format("dev/nvidia{}", answers.gpus.size()), "");
  answers.gpus.push_back({.index = static_cast<int>(answers.gpus.size()),
                          .pci_address = way.back(),
                          .name = "NVIDIA H200",
                          .gpu_direct_rdma = true,
                          .dmabuf = true,
                          .vmm_rdma = true,
                          .writes_ordering = 100});
}

void Machine::add_nic(const Way& way, int numa_node, const std::string& rdma_device,
                      const std::string& netdev) {
  add_function(
      {.way = way,
       .config = {.vendor = mellanox, .device = 0x1021, .class_code = 0x020000, .device_control = 0x10},
       .numa_node = numa_node,
       .driver = "mlx5_core"});
  const std::string pci = folder_of(way.back());
  const std::string device = pci + "/infiniband/" + rdma_device;
  tree.link("sys/class/infiniband/" + rdma_device, device);
  tree.link(device + "/device", pci);
  tree.file(device + "/node_type", "1: CA");
  tree.file(device + "/fw_ver", "28.39.1002");
  tree.file(device + "/board_id", "MT_0000000838");
  const Port port;
  const std::string ports = device + "/ports/1";
  tree.file(ports + "/state", port.state);
  tree.file(ports + "/phys_state", port.physical_state);
  tree.file(ports + "/link_layer", port.link_layer);
  tree.file(ports + "/rate", port.rate);
  for (const char* counter : {"local_ack_timeout_err", "out_of_sequence", "np_cnp_sent", "rp_cnp_handled"})
    tree.file(fmt::format("{}/hw_counters/{}", ports, counter), "0");
  tree.file(ports + "/hw_counters/lifespan", "10");
  tree.file(ports + "/counters/port_xmit_discards", "0");

  const std::string net = pci + "/net/" + netdev;
  tree.link("sys/class/net/" + netdev, net);
  tree.link(net + "/device", pci);
  tree.file(net + "/mtu", "9000");
  tree.file(net + "/operstate", "up");
  tree.file(net + "/carrier", "1");
  tree.file(net + "/flags", "0x1003");
  tree.file(net + "/dev_port", "0");
  tree.file(net + "/ifindex", std::to_string(uverbs_ + 2));

  const int rail = uverbs_;
  const std::string uverbs = fmt::format("uverbs{}", uverbs_++);
  tree.link("sys/class/infiniband_verbs/" + uverbs, pci + "/infiniband_verbs/" + uverbs);
  tree.file(pci + "/infiniband_verbs/" + uverbs + "/ibdev", rdma_device);
  tree.raw("dev/infiniband/" + uverbs, "");
  add_gid(rdma_device, 0, "fe80:0000:0000:0000:0000:0000:0000:0005", "IB/RoCE v1", netdev);
  add_gid(rdma_device, 1, "fe80:0000:0000:0000:0000:0000:0000:0005", "RoCE v2", netdev);
  const std::string ipv4 = fmt::format("0000:0000:0000:0000:0000:ffff:0a00:{:02x}05", rail);
  add_gid(rdma_device, 2, ipv4, "IB/RoCE v1", netdev);
  add_gid(rdma_device, 3, ipv4, "RoCE v2", netdev);
  add_route(netdev, fmt::format("00{:02X}000A", rail), "00FFFFFF");
  answers.rdma.push_back(
      {.device = rdma_device,
       .fabric = "hardware",
       .open_errno = 0,
       .dmabuf_probe = EBADF,
       .ports = {
           {.number = 1, .state = "ACTIVE", .link_layer = "Ethernet", .active_mtu = 4096, .max_mtu = 4096}}});
}

void Machine::add_soft_device(const std::string& rdma_device, const std::string& node_type,
                              const std::string& netdev, int netdev_mtu) {
  const std::string net = "sys/devices/virtual/net/" + netdev;
  tree.link("sys/class/net/" + netdev, net);
  tree.file(net + "/mtu", std::to_string(netdev_mtu));
  tree.file(net + "/operstate", "up");
  tree.file(net + "/carrier", "1");
  tree.file(net + "/flags", "0x1003");

  const std::string device = "sys/devices/virtual/infiniband/" + rdma_device;
  tree.link("sys/class/infiniband/" + rdma_device, device);
  tree.file(device + "/node_type", node_type);
  tree.file(device + "/parent", netdev);
  const Port port{.rate = "2.5 Gb/sec (1X SDR)"};
  tree.file(device + "/ports/1/state", port.state);
  tree.file(device + "/ports/1/phys_state", port.physical_state);
  tree.file(device + "/ports/1/link_layer", port.link_layer);
  tree.file(device + "/ports/1/rate", port.rate);

  const std::string uverbs = fmt::format("uverbs{}", uverbs_++);
  tree.file("sys/class/infiniband_verbs/" + uverbs + "/ibdev", rdma_device);
  tree.raw("dev/infiniband/" + uverbs, "");
  add_gid(rdma_device, 1, "0000:0000:0000:0000:0000:ffff:0a4d:0001", "RoCE v2", netdev);
  answers.rdma.push_back({.device = rdma_device,
                          .fabric = "soft-roce",
                          .open_errno = 0,
                          .dmabuf_probe = EOPNOTSUPP,
                          .ports = {{.number = 1,
                                     .state = "ACTIVE",
                                     .link_layer = "Ethernet",
                                     .active_mtu = netdev_mtu >= 4176 ? 4096 : 1024,
                                     .max_mtu = 4096}}});
}

void Machine::add_gid(const std::string& rdma_device, int index, const std::string& gid,
                      const std::string& type, const std::string& netdev) {
  const std::string port = "sys/class/infiniband/" + rdma_device;
  const std::string ports = tree.target(port) + "/ports/1";
  tree.file(fmt::format("{}/gids/{}", ports, index), gid);
  tree.file(fmt::format("{}/gid_attrs/types/{}", ports, index), type);
  tree.file(fmt::format("{}/gid_attrs/ndevs/{}", ports, index), netdev);
}

void Machine::add_route(const std::string& netdev, const std::string& destination, const std::string& mask) {
  constexpr const char* table = "proc/self/net/route";
  constexpr const char* head =
      "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT";
  tree.link("proc/net", "proc/self/net");
  const std::string known = tree.contains(table) ? tree.text(table) : head;
  tree.file(table, fmt::format("{}\n{}\t{}\t00000000\t0001\t0\t0\t0\t{}\t0\t0\t0", known, netdev, destination,
                               mask));
}

void Machine::add_nvidia_driver(bool open) {
  add_module("nvidia");
  tree.file("sys/module/nvidia/version", "580.95.05");
  for (const char* node : {"nvidiactl", "nvidia-uvm"}) tree.raw(fmt::format("dev/{}", node), "");
  tree.file(
      "proc/driver/nvidia/version",
      fmt::format(
          "NVRM version: NVIDIA UNIX {}x86_64{}  580.95.05  Release Build\nGCC version:  gcc version 12.2.0",
          open ? "Open Kernel Module for " : "", open ? "" : " Kernel Module"));
}

void Machine::add_module(const std::string& name) {
  const std::string known = tree.text("proc/modules");
  tree.file("proc/modules",
            known + (known.empty() ? "" : "\n") + name + " 65536 0 - Live 0x0000000000000000");
}

void Machine::remove_module(const std::string& name) {
  std::istringstream modules(tree.text("proc/modules"));
  tree.remove("proc/modules");
  for (std::string line; std::getline(modules, line);)
    if (const std::string module = line.substr(0, line.find(' ')); module != name) add_module(module);
}

doctor::GpuAnswer& Machine::gpu(const std::string& address) {
  return *std::find_if(answers.gpus.begin(), answers.gpus.end(),
                       [&](const doctor::GpuAnswer& one) { return one.pci_address == address; });
}

doctor::RdmaAnswer& Machine::rdma(const std::string& device) {
  return *std::find_if(answers.rdma.begin(), answers.rdma.end(),
                       [&](const doctor::RdmaAnswer& one) { return one.device == device; });
}

void Machine::write(const fs::path& folder) const {
  tree.write(folder);
  std::ofstream(folder / "answers.json") << doctor::to_json(answers).dump(1) << '\n';
}

}  // namespace gdrbench::synthetic
