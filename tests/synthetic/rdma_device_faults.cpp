#include <algorithm>
#include <cerrno>

#include "synthetic/faults.hpp"
#include "synthetic/healthy.hpp"

namespace gdrbench::synthetic {
namespace {

constexpr const char* netns_mode = "sys/module/ib_core/parameters/netns_mode";

Machine without_devices() {
  Machine machine = dgx();
  remove_rdma_device(machine, "mlx5_0", first_nic);
  remove_rdma_device(machine, "mlx5_1", second_nic);
  return machine;
}

Machine with_empty_class() {
  Machine machine = without_devices();
  machine.tree.folder("sys/class/infiniband");
  return machine;
}

// Their driver let go of them, or was never loaded.
Machine with_unbound_nics() {
  Machine machine = without_devices();
  for (const char* nic : {first_nic, second_nic}) machine.tree.remove(machine.folder_of(nic) + "/driver");
  machine.tree.remove("sys/class/infiniband");
  return machine;
}

Machine with_one_unbound_nic() {
  Machine machine = dgx();
  remove_rdma_device(machine, "mlx5_1", second_nic);
  machine.tree.remove(machine.folder_of(second_nic) + "/driver");
  return machine;
}

Machine without_mlx5_ib() {
  Machine machine = without_devices();
  machine.remove_module("mlx5_ib");
  return machine;
}

Machine with_rdma_modules_alone() {
  Machine machine = without_nics();
  machine.tree.folder("sys/class/infiniband");
  return machine;
}

// A network card on a bus of its own, with its netdev and without an RDMA device.
void add_network_card(Machine& machine, const Way& way, std::uint16_t vendor, const std::string& driver,
                      const std::string& netdev) {
  machine.add_function(
      {.way = way, .config = {.vendor = vendor, .device = 0x1041, .class_code = 0x020000}, .driver = driver});
  const std::string pci = machine.folder_of(way.back());
  machine.tree.link("sys/class/net/" + netdev, pci + "/net/" + netdev);
  machine.tree.link(pci + "/net/" + netdev + "/device", pci);
  machine.tree.file(pci + "/net/" + netdev + "/mtu", "1500");
}

// The RDMA core is part of its kernel, as in many clouds.
Machine guest_with_virtio_alone() {
  Machine machine = virtual_machine();
  constexpr const char* nic = "0000:00:06.0";
  remove_rdma_device(machine, "mlx5_0", nic);
  machine.tree.remove(machine.folder_of(nic));
  machine.tree.remove(std::string("sys/bus/pci/devices/") + nic);
  machine.tree.remove("sys/class/net/eth0");
  machine.tree.folder("sys/class/infiniband");
  add_network_card(machine, {"pci0000:00", "0000:00:03.0"}, 0x1af4, "virtio-pci", "eth0");
  return machine;
}

Machine server_with_ethernet_alone() {
  Machine machine = without_nics();
  add_network_card(machine, {"pci0000:17", "0000:17:09.0", "0000:30:00.0"}, 0x8086, "igb", "eno1");
  add_network_card(machine, {"pci0000:17", "0000:17:09.0", "0000:30:00.1"}, 0x8086, "igb", "eno2");
  return machine;
}

Machine server_with_an_unknown_nic() {
  Machine machine = server_with_ethernet_alone();
  machine.tree.folder("sys/class/infiniband");
  add_network_card(machine, {"pci0000:17", "0000:17:0a.0", "0000:31:00.0"}, 0x1f0f, "newnic", "ens5");
  return machine;
}

Machine exclusive_and_empty() {
  Machine machine = with_empty_class();
  machine.tree.file(netns_mode, "N");
  return machine;
}

Machine exclusive() {
  Machine machine = dgx();
  machine.tree.file(netns_mode, "N");
  return machine;
}

Machine without_uverbs() {
  Machine machine = dgx();
  machine.remove_module("ib_uverbs");
  machine.tree.remove("sys/class/infiniband_verbs");
  machine.tree.remove("dev/infiniband/uverbs0");
  machine.tree.remove("dev/infiniband/uverbs1");
  machine.answers.rdma.clear();
  return machine;
}

Machine with_nodes_not_mapped() {
  Machine machine = dgx();
  machine.tree.remove("dev/infiniband");
  machine.answers.rdma.clear();
  return machine;
}

Machine with_one_node_mapped() {
  Machine machine = dgx();
  machine.tree.remove("dev/infiniband/uverbs1");
  std::erase_if(machine.answers.rdma, [](const doctor::RdmaAnswer& one) { return one.device == "mlx5_1"; });
  return machine;
}

Machine opening_fails_with(int errno_value) {
  Machine machine = dgx();
  for (doctor::RdmaAnswer& one : machine.answers.rdma) {
    one.open_errno = errno_value;
    one.dmabuf_probe.reset();
    one.ports.clear();
  }
  return machine;
}

Machine without_provider() {
  Machine machine = dgx();
  machine.answers.rdma.clear();
  return machine;
}

Machine verbs_not_asked() {
  Machine machine = without_provider();
  machine.answers.verbs_queried = false;
  return machine;
}

Machine with_rdma_cm_not_mapped() {
  Machine machine = dgx();
  machine.tree.remove("dev/infiniband/rdma_cm");
  return machine;
}

Machine under_softverbs(Machine machine) {
  machine.answers.rdma = {
      {.device = "softverbs0", .fabric = "softverbs", .open_errno = 0, .dmabuf_probe = EBADF, .ports = {}}};
  return machine;
}

// Nothing explains the other here: each has to be told.
Machine with_faults_of_many_kinds() {
  Machine machine = with_rdma_cm_not_mapped();
  machine.answers.memlock_bytes = 64 << 10;
  machine.tree.file(machine.tree.target("sys/class/net/eth0") + "/mtu", "1500");
  machine.tree.file(port_folder(machine, "mlx5_1") + "/gids/3", "0000:0000:0000:0000:0000:0000:0000:0000");
  machine.tree.file(port_folder(machine, "mlx5_1") + "/gids/2", "0000:0000:0000:0000:0000:0000:0000:0000");
  machine.rdma("mlx5_0").open_errno = EPERM;
  machine.answers.counters_before = {{"mlx5_0/1/packet_seq_err", 0}};
  machine.answers.counters_after = {{"mlx5_0/1/packet_seq_err", 4}};
  return machine;
}

Machine with_verbs_abi(const std::string& version) {
  Machine machine = without_provider();
  machine.tree.file("sys/class/infiniband_verbs/abi_version", version);
  return machine;
}

Machine without_rdma_ucm() {
  Machine machine = dgx();
  machine.remove_module("rdma_ucm");
  machine.tree.remove("sys/class/misc/rdma_cm");
  machine.tree.remove("dev/infiniband/rdma_cm");
  return machine;
}

Machine with_memlock(std::optional<std::uint64_t> bytes) {
  Machine machine = dgx();
  machine.answers.memlock_bytes = bytes;
  return machine;
}

// CAP_IPC_LOCK is bit 14.
Machine with_low_memlock_and_capabilities(const std::string& effective) {
  Machine machine = with_memlock(8 << 20);
  machine.tree.file("proc/self/status", "Name:\tgdrbench\nCapPrm:\t0000000000000000\nCapEff:\t" + effective);
  return machine;
}

// hca_object counts queue pairs, memory regions and the like.
Machine in_a_cgroup_that_used(const std::string& objects) {
  Machine machine = dgx();
  machine.tree.file("proc/self/cgroup", "0::/job.slice/run.scope");
  const std::string folder = "sys/fs/cgroup/job.slice";
  machine.tree.file(folder + "/rdma.max",
                    "mlx5_0 hca_handle=max hca_object=100\nmlx5_1 hca_handle=max hca_object=max");
  machine.tree.file(folder + "/rdma.current",
                    "mlx5_0 hca_handle=1 hca_object=" + objects + "\nmlx5_1 hca_handle=0 hca_object=0");
  return machine;
}

}  // namespace

std::vector<Scenario> rdma_device_faults() {
  return {
      {"dgx_with_unbound_nics", with_unbound_nics, {"rdma_devices/nic_without_driver"}},
      {"dgx_with_one_unbound_nic", with_one_unbound_nic, {"rdma_devices/one_nic_without_driver"}},
      {"dgx_without_mlx5_ib", without_mlx5_ib, {"rdma_devices/nic_without_rdma_driver"}},
      {"dgx_with_empty_class", with_empty_class, {"rdma_devices/nic_without_rdma_driver"}},
      {"server_with_rdma_modules_alone",
       with_rdma_modules_alone,
       {"rdma_devices/no_device", "soft_roce/modules_hidden"}},
      {"guest_with_virtio_alone",
       guest_with_virtio_alone,
       {"rdma_devices/no_rdma_nic", "soft_roce/modules_hidden", "virtual_machine/guest"}},
      {"server_with_ethernet_alone",
       server_with_ethernet_alone,
       {"rdma_devices/no_rdma_nic", "soft_roce/modules_hidden"}},
      {"server_with_an_unknown_nic",
       server_with_an_unknown_nic,
       {"rdma_devices/no_device", "soft_roce/modules_hidden"}},
      {"dgx_in_an_exclusive_and_empty_netns", exclusive_and_empty, {"netns/hidden"}},
      {"dgx_with_exclusive_netns", exclusive, {"netns/exclusive"}},
      {"dgx_without_uverbs", without_uverbs, {"rdma_devices/no_uverbs"}},
      {"dgx_with_nodes_not_mapped",
       with_nodes_not_mapped,
       {"rdma_devices/node_not_mapped", "rdma_cm/node_not_mapped"}},
      {"dgx_with_one_node_mapped", with_one_node_mapped, {"rdma_devices/other_node_not_mapped"}},
      {"dgx_with_forbidden_nodes", [] { return opening_fails_with(EACCES); }, {"rdma_devices/open_denied"}},
      {"dgx_with_nodes_forbidden_by_cgroup",
       [] { return opening_fails_with(EPERM); },
       {"rdma_devices/open_denied"}},
      {"dgx_with_devices_that_do_not_open",
       [] { return opening_fails_with(EIO); },
       {"rdma_devices/open_failed"}},
      {"dgx_without_provider", without_provider, {"rdma_devices/provider_missing"}},
      {"dgx_whose_verbs_were_not_asked", verbs_not_asked, {"rdma_devices/not_asked"}},
      {"dgx_under_softverbs", [] { return under_softverbs(dgx()); }, {"rdma_devices/not_asked"}},
      {"server_under_softverbs",
       [] { return under_softverbs(without_nics()); },
       {"rdma_devices/only_softverbs", "soft_roce/modules_hidden"}},
      {"dgx_with_faults_of_many_kinds",
       with_faults_of_many_kinds,
       {"rdma_devices/open_denied", "rdma_cm/node_not_mapped", "gids/only_link_local", "memlock/too_low",
        "mtu/small_netdev_mtu", "counters/loss"}},
      {"dgx_with_unknown_verbs_abi", [] { return with_verbs_abi("7"); }, {"rdma_devices/abi_not_supported"}},
      {"dgx_without_rdma_ucm", without_rdma_ucm, {"rdma_cm/not_loaded"}},
      {"dgx_with_rdma_cm_not_mapped", with_rdma_cm_not_mapped, {"rdma_cm/node_not_mapped"}},
      {"dgx_with_low_memlock", [] { return with_memlock(8 << 20); }, {"memlock/too_low"}},
      {"dgx_with_enough_memlock", [] { return with_memlock(64 << 20); }, {}},
      {"dgx_with_unknown_memlock", [] { return with_memlock(std::nullopt); }, {"memlock/not_known"}},
      {"dgx_with_low_memlock_and_root",
       [] { return with_low_memlock_and_capabilities("000001ffffffffff"); },
       {"memlock/low_but_lifted"}},
      {"dgx_with_low_memlock_in_a_container",
       [] { return with_low_memlock_and_capabilities("00000000a80425fb"); },
       {"memlock/too_low"}},
      {"dgx_in_a_limited_cgroup", [] { return in_a_cgroup_that_used("40"); }, {"rdma_cgroup/limited"}},
      {"dgx_in_an_exhausted_cgroup", [] { return in_a_cgroup_that_used("100"); }, {"rdma_cgroup/exhausted"}},
  };
}

}  // namespace gdrbench::synthetic
