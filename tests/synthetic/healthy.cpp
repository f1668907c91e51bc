#include "synthetic/healthy.hpp"

#include <fmt/format.h>

#include "synthetic/faults.hpp"

namespace gdrbench::synthetic {
namespace {

// What every healthy Linux machine with GPUs and NICs has.
Machine server() {
  Machine machine;
  machine.tree.file("proc/sys/kernel/osrelease", "6.1.0-31-amd64");
  machine.tree.file("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro quiet");
  machine.tree.file("proc/cpuinfo",
                    "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R)\n"
                    "flags\t\t: fpu vme de pse");
  machine.tree.file("proc/meminfo",
                    "MemTotal:       262144000 kB\nMemFree:        200000000 kB\nHugePages_Total:       0");
  machine.tree.file("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
  machine.tree.folder("sys/kernel/iommu_groups");
  machine.tree.raw("proc/kallsyms", "0000000000000000 T ib_register_peer_memory_client\t[ib_core]\n");
  machine.add_nvidia_driver(true);
  for (const char* module : {"nvidia_peermem", "mlx5_core", "mlx5_ib", "ib_uverbs", "ib_core", "rdma_ucm"})
    machine.add_module(module);
  machine.tree.file("sys/module/nvidia_peermem/version", "580.95.05");
  machine.tree.file("sys/class/infiniband_verbs/abi_version", "6");
  machine.tree.file("sys/module/ib_core/parameters/netns_mode", "Y");
  machine.tree.file("sys/class/misc/rdma_cm/dev", "10:58");
  machine.tree.raw("dev/infiniband/rdma_cm", "");
  machine.answers.verbs_queried = true;
  machine.answers.memlock_bytes = ~std::uint64_t{0};
  machine.answers.privileged = true;
  machine.answers.kernel_log = "";
  return machine;
}

}  // namespace

Machine dgx() {
  Machine machine = server();
  machine.tree.file("sys/devices/system/cpu/online", "0-7");
  machine.add_numa_node(0, "0-3");
  machine.add_numa_node(1, "4-7");
  machine.add_gpu({"pci0000:17", "0000:17:01.0", "0000:18:00.0", "0000:19:01.0", "0000:1b:00.0"}, 0);
  machine.add_nic({"pci0000:17", "0000:17:01.0", "0000:18:00.0", "0000:19:02.0", "0000:1c:00.0"}, 0, "mlx5_0",
                  "eth0");
  machine.add_gpu({"pci0000:b7", "0000:b7:01.0", "0000:b8:00.0", "0000:b9:01.0", "0000:bb:00.0"}, 1);
  machine.add_nic({"pci0000:b7", "0000:b7:01.0", "0000:b8:00.0", "0000:b9:02.0", "0000:bc:00.0"}, 1, "mlx5_1",
                  "eth1");
  return machine;
}

Machine two_socket() {
  Machine machine = server();
  machine.tree.file("sys/devices/system/cpu/online", "0-7");
  machine.add_numa_node(0, "0-3");
  machine.add_numa_node(1, "4-7");
  machine.add_nic({"pci0000:16", "0000:16:01.0", "0000:17:00.0"}, 0, "mlx5_0", "eth0");
  machine.add_gpu({"pci0000:16", "0000:16:03.0", "0000:19:00.0"}, 0);
  machine.add_gpu({"pci0000:38", "0000:38:01.0", "0000:3a:00.0"}, 0);
  machine.add_nic({"pci0000:96", "0000:96:01.0", "0000:97:00.0"}, 1, "mlx5_1", "eth1");
  machine.add_gpu({"pci0000:96", "0000:96:03.0", "0000:99:00.0"}, 1);
  return machine;
}

Machine grace() {
  Machine machine = server();
  machine.tree.file("proc/sys/kernel/osrelease", "6.8.0-1021-nvidia-64k");
  machine.tree.file("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro quiet iommu.passthrough=1");
  machine.tree.file("proc/cpuinfo",
                    "processor\t: 0\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd evtstrm aes\n"
                    "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: 0xd4f\n"
                    "CPU revision\t: 0");
  machine.tree.file("proc/driver/nvidia/version",
                    "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.95.05  Release Build\n"
                    "GCC version:  gcc version 13.2.0");
  machine.tree.file("sys/devices/system/cpu/online", "0-7");
  machine.add_numa_node(0, "0-3");
  machine.add_numa_node(1, "4-7");
  machine.add_numa_node(2, "");  // the GPUs' memory
  machine.add_numa_node(10, "");
  machine.add_nic({"pci0002:00", "0002:00:00.0", "0002:01:00.0"}, 0, "mlx5_0", "eth0");
  machine.add_gpu({"pci0009:00", "0009:00:00.0", "0009:01:00.0"}, 0);
  machine.add_gpu({"pci0019:00", "0019:00:00.0", "0019:01:00.0"}, 1);
  int group = 0;
  for (const char* address : {"0002:01:00.0", "0009:01:00.0", "0019:01:00.0"})
    machine.add_to_iommu_group(address, group++, "identity");
  return machine;
}

Machine virtual_machine() {
  Machine machine = server();
  machine.tree.file("proc/cpuinfo",
                    "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R)\n"
                    "flags\t\t: fpu vme de pse hypervisor");
  machine.tree.file("sys/class/dmi/id/sys_vendor", "QEMU");
  machine.tree.file("sys/class/dmi/id/product_name", "Standard PC (Q35 + ICH9, 2009)");
  machine.tree.file("sys/devices/system/cpu/online", "0-3");
  machine.add_numa_node(0, "0-3");
  machine.add_gpu({"pci0000:00", "0000:00:05.0"}, -1);
  machine.add_nic({"pci0000:00", "0000:00:06.0"}, -1, "mlx5_0", "eth0");
  for (const char* address : {"0000:00:05.0", "0000:00:06.0"})
    machine.change_config(address, [](PciConfig& config) { config.ats_control = 0x8000; });
  return machine;
}

std::vector<Scenario> healthy_machines() {
  return {{"dgx", dgx, {}},
          {"large", large, {}},
          {"two_socket", two_socket, {"distance/host_bridge"}},
          {"grace", grace, {}},
          {"virtual_machine", virtual_machine, {"virtual_machine/guest"}}};
}

void add_nvme(Machine& machine, const Way& way, int numa_node, const std::string& disk) {
  machine.add_function({.way = way,
                        .config = {.vendor = 0x144d, .device = 0xa80a, .class_code = 0x010802},
                        .numa_node = numa_node,
                        .driver = "nvme",
                        .link_speed = "16.0 GT/s PCIe",
                        .link_width = 4});
  const std::string pci = machine.folder_of(way.back());
  const std::string block = fmt::format("{}/nvme/{}/{}", pci, disk.substr(0, disk.find('n', 4)), disk);
  machine.tree.file(block + "/size", "3750748848");
  machine.tree.file(block + "/dev", "259:0");
  machine.tree.link("sys/class/block/" + disk, block);
}

void add_rxe(Machine& machine, const std::string& name, const std::string& netdev) {
  const std::string device = "sys/devices/virtual/infiniband/" + name;
  machine.tree.link("sys/class/infiniband/" + name, device);
  machine.tree.file(device + "/parent", netdev);
  machine.tree.file(device + "/node_type", "1: CA");
  machine.tree.file(device + "/ports/1/state", "4: ACTIVE");
  machine.tree.file(device + "/ports/1/link_layer", "Ethernet");
  machine.tree.file(device + "/ports/1/rate", "2.5 Gb/sec (1X SDR)");
}

Machine large() {
  Machine machine = dgx();
  // Each switch has two buses above its ports; those of the first two have a GPU and a NIC already.
  struct Switch {
    int root_bus, numa_node, first_port, first_bus, more;
  };
  int number = 2, disk = 0;
  for (const auto& [root_bus, node, first_port, first_bus, more] :
       {Switch{0x17, 0, 3, 0x1d, 3}, Switch{0xb7, 1, 3, 0xbd, 3}, Switch{0x40, 0, 1, 0x43, 4},
        Switch{0x90, 1, 1, 0x93, 4}}) {
    const auto place = [root = root_bus, port = first_port, bus = first_bus](int which) {
      return Way{fmt::format("pci0000:{:02x}", root), fmt::format("0000:{:02x}:01.0", root),
                 fmt::format("0000:{:02x}:00.0", root + 1),
                 fmt::format("0000:{:02x}:{:02x}.0", root + 2, port + which),
                 fmt::format("0000:{:02x}:00.0", bus + which)};
    };
    for (int i = 0; i < more; ++i, ++number) {
      machine.add_gpu(place(2 * i), node);
      machine.add_nic(place(2 * i + 1), node, fmt::format("mlx5_{}", number), fmt::format("eth{}", number));
    }
    add_nvme(machine, place(2 * more), node, fmt::format("nvme{}n1", disk++));
  }
  return machine;
}

Machine plain() {
  Machine machine;
  machine.tree.file("proc/sys/kernel/osrelease", "6.1.0-31-amd64");
  machine.tree.file("sys/devices/system/cpu/online", "0-3");
  machine.add_numa_node(0, "0-3");
  return machine;
}

}  // namespace gdrbench::synthetic
