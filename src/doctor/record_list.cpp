#include "doctor/record_list.hpp"

#include "doctor/subnets.hpp"

namespace gdrbench::doctor {
namespace {

constexpr Recorded machine[] = {
    // RDMA. By name: among a device's attributes are serial numbers and what the administrator says of it.
    {"sys/class/infiniband/*/board_id", Take::text},
    {"sys/class/infiniband/*/fw_ver", Take::text},
    {"sys/class/infiniband/*/hca_type", Take::text},
    {"sys/class/infiniband/*/hw_rev", Take::text},
    {"sys/class/infiniband/*/node_guid", Take::text},
    {"sys/class/infiniband/*/node_type", Take::text},
    {"sys/class/infiniband/*/parent", Take::text},
    {"sys/class/infiniband/*/sys_image_guid", Take::text},
    {"sys/class/infiniband/*/device", Take::link},
    {"sys/class/infiniband/*/device/net/*/mtu", Take::text},
    {"sys/class/infiniband/*/ports/*/*", Take::text},
    {"sys/class/infiniband/*/ports/*/gids/*", Take::text},
    {"sys/class/infiniband/*/ports/*/gid_attrs/types/*", Take::text},
    {"sys/class/infiniband/*/ports/*/gid_attrs/ndevs/*", Take::text},
    {"sys/class/infiniband/*/ports/*/counters/*", Take::text},
    {"sys/class/infiniband/*/ports/*/hw_counters/*", Take::text},
    {"sys/class/infiniband/*/hw_counters/*", Take::text},
    {"sys/class/infiniband/*/ports/*/pkeys/0", Take::text},
    {"sys/class/infiniband", Take::name},
    {"sys/class/infiniband_verbs", Take::name},
    {"sys/class/infiniband_verbs/abi_version", Take::text},
    {"sys/class/infiniband_verbs/*/ibdev", Take::text},
    {"sys/class/infiniband_verbs/*/abi_version", Take::text},
    {"sys/class/infiniband_verbs/*/dev", Take::text},
    {"sys/class/misc/rdma_cm/*", Take::text},
    // Networks, without aliases and addresses of switches
    {"sys/class/net/*", Take::link},
    {"sys/class/net/*/device", Take::link},
    {"sys/class/net/*/addr_assign_type", Take::text},
    {"sys/class/net/*/address", Take::text},
    {"sys/class/net/*/carrier", Take::text},
    {"sys/class/net/*/carrier_changes", Take::text},
    {"sys/class/net/*/dev_id", Take::text},
    {"sys/class/net/*/dev_port", Take::text},
    {"sys/class/net/*/duplex", Take::text},
    {"sys/class/net/*/flags", Take::text},
    {"sys/class/net/*/ifindex", Take::text},
    {"sys/class/net/*/iflink", Take::text},
    {"sys/class/net/*/mtu", Take::text},
    {"sys/class/net/*/operstate", Take::text},
    {"sys/class/net/*/speed", Take::text},
    {"sys/class/net/*/tx_queue_len", Take::text},
    {"sys/class/net/*/type", Take::text},
    {"sys/class/net/*/statistics/*", Take::text},
    // NVMe
    {"sys/class/nvme/*/model", Take::text},
    {"sys/class/nvme/*/device", Take::link},
    {"sys/class/block/*/device", Take::link},
    // PCI, IOMMU
    {"sys/kernel/iommu_groups", Take::name},
    {"sys/kernel/iommu_groups/*/type", Take::text},
    {"sys/kernel/iommu_groups/*/devices/*", Take::link},
    {"sys/class/iommu", Take::name},
    {"sys/class/iommu/*", Take::link},
    {"sys/firmware/acpi/tables/*", Take::name},
    {"sys/class/dmi/id/product_name", Take::text},
    {"sys/class/dmi/id/sys_vendor", Take::text},
    {"sys/hypervisor/type", Take::text},
    // CPUs and memory
    {"sys/devices/system/node/*", Take::text},
    {"sys/devices/system/node/node*/*", Take::text},
    {"sys/devices/system/node/node*/cpu*", Take::link},
    {"sys/devices/system/node/node*/hugepages/*/*", Take::text},
    {"sys/devices/system/cpu/*", Take::text},
    {"sys/devices/system/cpu/smt/*", Take::text},
    {"sys/devices/system/cpu/intel_pstate/*", Take::text},
    {"sys/devices/system/cpu/cpufreq/*", Take::text},
    {"sys/devices/system/cpu/cpu*/online", Take::text},
    {"sys/devices/system/cpu/cpu*/topology/*", Take::text},
    {"sys/devices/system/cpu/cpu*/cpufreq/*", Take::text},
    {"sys/kernel/mm/hugepages/*/*", Take::text},
    {"sys/kernel/mm/transparent_hugepage/*", Take::text},
    {"sys/kernel/mm/memory_peers", Take::tree},
    {"sys/kernel/security/lockdown", Take::text},
    {"sys/module/*", Take::name},
    {"proc/cmdline", Take::text},
    {"proc/cpuinfo", Take::text},
    {"proc/meminfo", Take::text},
    {"proc/version", Take::text},
    {"proc/modules", Take::text},
    {"proc/kallsyms", Take::lines},
    {"proc/driver/nvidia/*", Take::text},
    {"proc/driver/nvidia/gpus/*/information", Take::text},
    {"proc/sys/kernel/osrelease", Take::text},
    {"proc/sys/kernel/ostype", Take::text},
    {"proc/sys/kernel/version", Take::text},
    {"proc/sys/kernel/dmesg_restrict", Take::text},
    {"proc/sys/kernel/kptr_restrict", Take::text},
    {"proc/sys/kernel/numa_balancing", Take::text},
    {"proc/sys/kernel/yama/ptrace_scope", Take::text},
    {"proc/sys/vm/*hugepage*", Take::text},
    {"proc/sys/vm/max_map_count", Take::text},
    {"proc/sys/net/ipv4/conf/*/rp_filter", Take::text},
    {"proc/sys/net/ipv4/conf/*/arp_*", Take::text},
    {route_file, Take::subnets},
    {"proc/1/cgroup", Take::name},
    {"proc/self/limits", Take::text},
    {"proc/self/status", Take::lines},
    {"proc/self/cgroup", Take::text},
    {"proc/crypto", Take::lines},
    // What is where
    {"dev/infiniband/*", Take::name},
    {"dev/nvidia*", Take::name},
    {"dev/nvidia-caps/*", Take::name},
    {"dev/gdrdrv", Take::name},
    {"dev/dxg", Take::name},
    {"dev/vfio/*", Take::name},
    {"dev/dma_heap/*", Take::name},
    {".dockerenv", Take::name},
    {"run/.containerenv", Take::name},
    {"run/systemd/container", Take::text},
    {"run/udev", Take::name},
    {"etc/modules", Take::lines},
    {"etc/modules-load.d/*", Take::lines},
    {"etc/modprobe.d/*", Take::lines},
    {"usr/lib/modules-load.d/*", Take::lines},
    {"usr/lib/modprobe.d/*", Take::lines},
    {"etc/libibverbs.d/*", Take::text},
    {"usr/lib/*/libibverbs/*", Take::name},
    {"usr/lib64/libibverbs/*", Take::name},
    {"usr/lib/libibverbs/*", Take::name},
};

constexpr Recorded module_files[] = {
    {"version", Take::text}, {"srcversion", Take::text},   {"initstate", Take::text}, {"refcnt", Take::text},
    {"taint", Take::text},   {"parameters/*", Take::text}, {"holders/*", Take::name},
};

constexpr Recorded pci[] = {
    {"class", Take::text},
    {"vendor", Take::text},
    {"device", Take::text},
    {"subsystem_vendor", Take::text},
    {"subsystem_device", Take::text},
    {"revision", Take::text},
    {"irq", Take::text},
    {"enable", Take::text},
    {"numa_node", Take::text},
    {"local_cpus", Take::text},
    {"local_cpulist", Take::text},
    {"current_link_speed", Take::text},
    {"current_link_width", Take::text},
    {"max_link_speed", Take::text},
    {"max_link_width", Take::text},
    {"resource", Take::text},
    {"config", Take::text},
    {"modalias", Take::text},
    {"label", Take::text},
    {"ari_enabled", Take::text},
    {"ats", Take::text},
    {"sriov_numvfs", Take::text},
    {"sriov_totalvfs", Take::text},
    {"d3cold_allowed", Take::text},
    {"power_state", Take::text},
    {"power/control", Take::text},
    {"power/runtime_status", Take::text},
    {"aer_dev_correctable", Take::text},
    {"aer_dev_fatal", Take::text},
    {"aer_dev_nonfatal", Take::text},
    {"driver", Take::link},
    {"driver_override", Take::text},
    {"iommu_group", Take::link},
    {"iommu", Take::link},
    {"physfn", Take::link},
    {"infiniband/*", Take::name},
    {"net/*", Take::name},
};

constexpr std::string_view words[] = {
    "CapEff", "nvidia",  "nv_peer_mem", "gdrdrv",      "mlx4",    "mlx5",         "ib_",
    "rdma",   "rxe",     "siw",         "iw_cm",       "bnxt",    "irdma",        "qedr",
    "efa",    "hfi1",    "erdma",       "mana",        "vfio",    "pci",          "crc32",
    "iommu",  "nouveau", "hugetlb",     "peer_memory", "dma_buf", "memory_peers",
};

}  // namespace

std::span<const Recorded> record_list() {
  return machine;
}

std::span<const Recorded> record_list_of_modules() {
  return module_files;
}

std::span<const Recorded> record_list_of_pci() {
  return pci;
}

std::span<const std::string_view> record_words() {
  return words;
}

}  // namespace gdrbench::doctor
