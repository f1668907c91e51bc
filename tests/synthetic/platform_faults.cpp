#include <cerrno>

#include "synthetic/faults.hpp"
#include "synthetic/healthy.hpp"

namespace gdrbench::synthetic {
namespace {

// Of dgx(): the ports above the first GPU and the first NIC, of one switch.
constexpr const char* port_of_gpu0 = "0000:19:01.0";
constexpr const char* port_of_nic0 = "0000:19:02.0";
constexpr const char* root_port0 = "0000:17:01.0";

std::vector<Scenario> pci_faults() {
  const auto acs_on = [](Machine& m) {
    for (const char* port : {port_of_gpu0, port_of_nic0})
      m.change_config(port, [](PciConfig& config) { config.acs_control = 0x1d; });
  };
  return {
      fault("acs_on", acs_on, {"acs/redirects"}),
      // Between a GPU and a NIC of one switch nothing passes the root port.
      fault("acs_on_above_the_switch",
            [](Machine& m) {
              m.change_config(root_port0, [](PciConfig& config) { config.acs_control = 0x1d; });
            },
            {}),
      fault("bridges_without_acs",
            [](Machine& m) {
              m.change_config(port_of_gpu0, [](PciConfig& config) { config.acs_control.reset(); });
            },
            {}),
      // Below different root ports traffic meets the CPU with or without ACS.
      {"two_socket_with_acs_on",
       [] {
         return changed(two_socket(), [](Machine& m) {
           for (const char* port : {"0000:16:01.0", "0000:16:03.0"})
             m.change_config(port, [](PciConfig& config) { config.acs_control = 0x1d; });
         });
       },
       {"distance/host_bridge"}},
      fault("seen_without_rights", [](Machine& m) { m.hide_capabilities(); },
            {"acs/unknown", "relaxed_ordering/unknown"}),
      fault("iommu_translates",
            [](Machine& m) {
              m.tree.file("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro intel_iommu=on");
              m.add_to_iommu_group(first_gpu, 12, "DMA-FQ");
              m.add_to_iommu_group(first_nic, 13, "DMA-FQ");
            },
            {"iommu/translates"}),
      fault("iommu_passes_through",
            [](Machine& m) {
              m.tree.file("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro intel_iommu=on iommu=pt");
              m.add_to_iommu_group(first_gpu, 12, "identity");
              m.add_to_iommu_group(first_nic, 13, "identity");
            },
            {}),
      fault("iommu_hidden",
            [](Machine& m) {
              m.add_to_iommu_group(first_gpu, 12, "DMA");
              m.tree.remove("sys/kernel/iommu_groups/12/type");
            },
            {"iommu/unknown"}),
      fault("iommu_passthrough_by_command_line",
            [](Machine& m) {
              m.tree.file("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro intel_iommu=on iommu=pt");
              m.add_to_iommu_group(first_gpu, 12, "DMA");
              m.tree.remove("sys/kernel/iommu_groups/12/type");
            },
            {}),
      {"virtual_machine_without_ats",
       [] {
         return changed(virtual_machine(), [](Machine& m) {
           m.change_config("0000:00:06.0", [](PciConfig& config) { config.ats_control = 0; });
         });
       },
       {"virtual_machine/guest", "virtual_machine/ats_off"}},
      {"virtual_machine_seen_without_rights",
       [] { return changed(virtual_machine(), [](Machine& m) { m.hide_capabilities(); }); },
       {"virtual_machine/guest", "virtual_machine/ats_unknown"}},
      fault("tiny_bar1", [](Machine& m) { set_bar1(m, first_gpu, 0xd0000000, 0xd1ffffff); },
            {"bar1/too_small"}),
      // 64 MiB, all that the doctor asks for.
      fault("bar1_as_large_as_the_request",
            [](Machine& m) { set_bar1(m, first_gpu, 0xd0000000, 0xd3ffffff); }, {"bar1/too_small"}),
      fault("bar1_of_a_t4", [](Machine& m) { set_bar1(m, first_gpu, 0xd0000000, 0xdfffffff); },
            {"bar1/small"}),
      fault("bar1_without_address", [](Machine& m) { set_bar1(m, first_gpu, 0, 0); }, {"bar1/unassigned"}),
      fault("unreadable_bar1", [](Machine& m) { m.tree.remove(m.folder_of(first_gpu) + "/resource"); },
            {"bar1/unknown"}),
      fault("bar1_above_56_tb", [](Machine& m) { set_bar1(m, first_gpu, 0x38a000000000, 0x38bfffffffff); },
            {"bar_placement/above_56_tb"}),
      fault("bar1_above_56_tb_and_fine",
            [](Machine& m) {
              set_bar1(m, first_gpu, 0x38a000000000, 0x38bfffffffff);
              m.answers.probes.push_back({.what = "transfer cuda write",
                                          .device = "mlx5_0",
                                          .gpu = first_gpu,
                                          .outcome = "passed",
                                          .text = ""});
            },
            {}),
  };
}

std::vector<Scenario> performance_faults() {
  const auto logged = [](const std::string& line) { return [line](Machine& m) { m.log(line); }; };
  return {
      fault("narrow_link", [](Machine& m) { m.train_link(first_nic, "32.0 GT/s PCIe", 8); },
            {"pcie_link/narrower"}),
      fault("slow_link", [](Machine& m) { m.train_link(first_nic, "8.0 GT/s PCIe", 16); },
            {"pcie_link/slower"}),
      fault("idle_gpu", [](Machine& m) { m.train_link(first_gpu, "2.5 GT/s PCIe", 16); },
            {"pcie_link/gpu_asleep"}),
      fault("lesser_slot",
            [](Machine& m) {
              m.train_link(first_nic, "16.0 GT/s PCIe", 16);
              m.tree.file(m.folder_of(port_of_nic0) + "/max_link_speed", "16.0 GT/s PCIe");
            },
            {"pcie_link/slot_limits"}),
      fault("ordering_off",
            [](Machine& m) {
              m.change_config(first_nic, [](PciConfig& config) { config.device_control = 0; });
            },
            {"relaxed_ordering/off"}),
      fault("haswell",
            [](Machine& m) {
              m.change_config(first_nic, [](PciConfig& config) { config.device_control = 0; });
              m.change_config(root_port0, [](PciConfig& config) {
                config.vendor = 0x8086;
                config.device = 0x2f04;
              });
            },
            {"relaxed_ordering/old_processor"}),
      {"two_socket_with_one_nic",
       [] { return changed(two_socket(), [](Machine& m) { make_plain_nic(m, "0000:97:00.0", "mlx5_1"); }); },
       {"distance/host_bridge", "distance/sockets"}},
      {"two_socket_without_numa_nodes",
       [] {
         return changed(two_socket(), [](Machine& m) {
           for (const char* address : {"0000:3a:00.0", "0000:17:00.0", "0000:97:00.0"})
             m.tree.file(m.folder_of(address) + "/numa_node", "-1");
         });
       },
       {"distance/host_bridge", "distance/unknown"}},
      fault("powersave",
            [](Machine& m) {
              m.tree.file("sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "powersave");
            },
            {"cpu/governor"}),
      fault("numa_balancing", [](Machine& m) { m.tree.file("proc/sys/kernel/numa_balancing", "1"); },
            {"numa/balancing"}),
      fault("without_huge_pages",
            [](Machine& m) {
              m.tree.file("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]");
            },
            {"huge_pages/never"}),
      fault("node_without_memory",
            [](Machine& m) {
              m.tree.file("sys/devices/system/node/node1/meminfo", "Node 1 MemTotal:       0 kB");
            },
            {"numa/no_memory"}),
      fault("unreadable_log", [](Machine& m) { m.answers.kernel_log.reset(); }, {"kernel_log/unreadable"}),
      fault("gpu_fallen_off_the_bus",
            logged("[ 8211.1] NVRM: Xid (PCI:0000:bb:00): 79, pid='<unknown>', GPU has fallen off the bus."),
            {"kernel_log/xid"}),
      fault("crashed_program",
            logged("[ 911.4] NVRM: Xid (PCI:0000:bb:00): 31, pid=4711, name=python, Ch 00000008"), {}),
      fault("gpu_that_does_not_start",
            logged("[ 21.0] NVRM: GPU 0000:bb:00.0: RmInitAdapter failed! (0x24:0xffff:1460)"),
            {"kernel_log/gpu_init"}),
      fault("nic_time_out",
            logged("[ 733.9] mlx5_core 0000:1c:00.0: wait_func:1137:(pid 2211): ACCESS_REG(0x805) timeout. "
                   "Will cause "
                   "a leak of a command resource"),
            {"kernel_log/nic"}),
      fault("pcie_errors",
            logged("[ 100.2] pcieport 0000:17:01.0: AER: Corrected error received: 0000:18:00.0"),
            {"kernel_log/pcie_errors"}),
      fault("pcie_errors_elsewhere",
            logged("[ 100.2] pcieport 0000:00:1c.0: AER: Corrected error received: 0000:02:00.0"), {}),
      fault("iommu_fault",
            logged("[ 55.6] DMAR: [DMA Write NO_PASID] Request device [1c:00.0] fault addr 0x200000000000 "
                   "[fault reason "
                   "0x05] PTE Write access is not set"),
            {"kernel_log/iommu_fault"}),
      fault("smmu_fault", logged("[ 61.2] arm-smmu-v3 arm-smmu-v3.16.auto: event 0x10 received:"),
            {"kernel_log/iommu_fault"}),
  };
}

// Several at once: each is found, and none hides another.
std::vector<Scenario> several_faults() {
  return {
      fault("acs_on_without_peermem_and_relaxed_ordering",
            [](Machine& m) {
              remove_peermem(m);
              for (const char* port : {port_of_gpu0, port_of_nic0})
                m.change_config(port, [](PciConfig& config) { config.acs_control = 0x1d; });
              m.change_config(first_nic, [](PciConfig& config) { config.device_control = 0; });
            },
            {"acs/redirects", "peermem/not_loaded", "relaxed_ordering/off"}),
      fault("old_kernel_without_peermem_and_iommu",
            [](Machine& m) {
              remove_peermem(m);
              m.tree.file("proc/sys/kernel/osrelease", "5.4.0-190-generic");
              for (doctor::RdmaAnswer& device : m.answers.rdma) device.dmabuf_probe = EPROTONOSUPPORT;
              m.add_to_iommu_group(second_gpu, 12, "DMA");
              m.tree.file("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "schedutil");
            },
            {"iommu/translates", "dmabuf/old_kernel", "peermem/missing", "registration/rdma_side",
             "cpu/governor"}),
      fault("geforce_with_small_bar1_and_wrong_abi",
            [](Machine& m) {
              remove_peermem(m);
              m.log(
                  "[ 12.1] nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client");
              for (doctor::GpuAnswer& gpu : m.answers.gpus) {
                gpu.gpu_direct_rdma = false;
                gpu.dmabuf = false;
              }
              for (const char* address : {first_gpu, second_gpu})
                set_bar1(m, address, 0xd0000000, 0xd0ffffff);
            },
            {"registration/gpu_unsupported", "bar1/too_small"}),
  };
}

}  // namespace

std::vector<Scenario> platform_faults() {
  std::vector<Scenario> all;
  for (const auto& list : {pci_faults(), performance_faults(), several_faults()})
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace gdrbench::synthetic
