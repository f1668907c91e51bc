#include "synthetic/faults.hpp"
#include "synthetic/healthy.hpp"

namespace gdrbench::synthetic {
namespace {

constexpr const char* rxe_file = "kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko";

// A machine without NIC, whose kernel's files can be seen; `modules` is its modules.dep.
Machine with_kernel(const std::string& release, const std::string& modules,
                    const std::string& builtin = "kernel/lib/crc32.ko") {
  Machine machine = without_nics();
  machine.tree.file("proc/sys/kernel/osrelease", release);
  machine.tree.file("lib/modules/" + release + "/modules.dep", modules);
  machine.tree.file("lib/modules/" + release + "/modules.builtin", builtin);
  return machine;
}

Machine with_rxe_module() {
  return with_kernel("6.1.0-31-amd64", std::string("kernel/drivers/infiniband/core/ib_core.ko:\n") +
                                           rxe_file + ": kernel/drivers/infiniband/core/ib_core.ko");
}

Machine with_builtin_rxe() {
  return with_kernel("6.12.0-custom", "kernel/fs/fuse/fuse.ko:", rxe_file);
}

Machine with_loaded_rxe() {
  Machine machine = with_rxe_module();
  machine.tree.folder("sys/class/infiniband");
  machine.add_module("rdma_rxe");
  return machine;
}

// Something depends on a module of that name, which itself is not there.
Machine with_kernel_without_rxe(const std::string& release) {
  return with_kernel(release, std::string("kernel/drivers/other.ko: ") + rxe_file);
}

Machine with_failed_addition(const std::string& log) {
  Machine machine = with_loaded_rxe();
  machine.answers.kernel_log = "usb 1-1: new device\n" + log + "\n";
  return machine;
}

// A kernel that does not say why.
Machine with_failed_addition_and_crypto(const std::string& release, const std::string& algorithms) {
  Machine machine = with_failed_addition("rdma_rxe: failed to add veth0");
  machine.tree.file("proc/sys/kernel/osrelease", release);
  machine.tree.file("proc/crypto", "name         : crc32c\ndriver       : crc32c-generic\n" + algorithms);
  return machine;
}

Machine with_soft_devices(int count, const std::string& node_type, int mtu) {
  Machine machine = with_loaded_rxe();
  machine.tree.file("sys/class/infiniband_verbs/abi_version", "6");
  machine.tree.file("sys/class/misc/rdma_cm/dev", "10:58");
  machine.tree.raw("dev/infiniband/rdma_cm", "");
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    machine.add_soft_device("rxe" + number, node_type, "veth" + number, mtu);
  }
  return machine;
}

}  // namespace

std::vector<Scenario> soft_roce_faults() {
  const std::string no_rdma = "rdma_devices/no_rdma";
  return {
      {"server_without_nics", without_nics, {no_rdma, "soft_roce/modules_hidden"}},
      {"server_with_rxe_module", with_rxe_module, {no_rdma, "soft_roce/not_loaded"}},
      {"server_with_builtin_rxe", with_builtin_rxe, {no_rdma, "soft_roce/no_link"}},
      {"server_with_loaded_rxe", with_loaded_rxe, {"rdma_devices/no_device", "soft_roce/no_link"}},
      {"azure_runner",
       [] { return with_kernel_without_rxe("6.11.0-1018-azure"); },
       {no_rdma, "soft_roce/azure_kernel"}},
      {"debian_cloud_server",
       [] { return with_kernel_without_rxe("6.1.0-31-cloud-amd64"); },
       {no_rdma, "soft_roce/cloud_kernel"}},
      {"ubuntu_without_extra_modules",
       [] { return with_kernel_without_rxe("6.8.0-60-generic"); },
       {no_rdma, "soft_roce/extra_modules"}},
      {"server_with_own_kernel",
       [] { return with_kernel_without_rxe("6.12.0-custom"); },
       {no_rdma, "soft_roce/no_module"}},
      {"server_without_crc32",
       [] {
         return with_failed_addition(
             "rdma_rxe: failed to init crc32 algorithm err: -2\nrdma_rxe: failed to add veth0");
       },
       {"rdma_devices/no_device", "soft_roce/crc32_missing"}},
      {"server_without_crc32_whose_kernel_is_silent",
       [] { return with_failed_addition_and_crypto("6.8.0-60-generic", ""); },
       {"rdma_devices/no_device", "soft_roce/crc32_missing"}},
      {"server_with_crc32_that_fails_to_add",
       [] { return with_failed_addition_and_crypto("6.8.0-60-generic", "\nname         : crc32\n"); },
       {"rdma_devices/no_device", "soft_roce/add_failed"}},
      {"new_kernel_that_fails_to_add",
       [] { return with_failed_addition_and_crypto("6.16.3-generic", ""); },
       {"rdma_devices/no_device", "soft_roce/add_failed"}},
      {"server_with_rxe_on_a_vlan",
       [] { return with_failed_addition("rdma_rxe: rxe creation allowed on top of a real device only"); },
       {"rdma_devices/no_device", "soft_roce/add_failed"}},
      {"server_whose_log_tells_of_another_driver",
       [] { return with_failed_addition("bond0: failed to add eth0"); },
       {"rdma_devices/no_device", "soft_roce/no_link"}},
      {"soft_roce", [] { return with_soft_devices(1, "1: CA", 4200); }, {"soft_roce/rxe"}},
      {"soft_roce_with_mtu_1500",
       [] { return with_soft_devices(1, "1: CA", 1500); },
       {"soft_roce/rxe", "soft_roce/small_mtu"}},
      // 4096 + 80, where hardware would need 4096 + 96.
      {"soft_roce_with_mtu_4176", [] { return with_soft_devices(1, "1: CA", 4176); }, {"soft_roce/rxe"}},
      {"two_soft_roce_devices",
       [] { return with_soft_devices(2, "1: CA", 4200); },
       {"soft_roce/rxe", "soft_roce/two_devices"}},
      {"soft_iwarp", [] { return with_soft_devices(1, "4: RNIC", 1500); }, {"soft_roce/siw"}},
  };
}

}  // namespace gdrbench::synthetic
