#include "machines/healthy.hpp"

#include "machines/faults.hpp"

namespace gdrbench::machines {
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
  machine.answers.verbs_asked = true;
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

std::vector<Known> healthy_machines() {
  return {{"dgx", dgx, {}}};
}

}  // namespace gdrbench::machines
