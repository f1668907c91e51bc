#include <cerrno>
#include <optional>

#include "machines/platform_changes.hpp"

namespace gdrbench::machines {
namespace {

using Change = std::function<void(Machine&)>;

// Attributes of every GPU, whether the module is loaded, and the errno value of the probe of every device.
struct Ways {
  bool rdma = true, dmabuf = true, peermem = true;
  std::optional<int> probe = EBADF;
};

Change offer(Ways ways) {
  return [ways](Machine& machine) {
    for (doctor::GpuAnswer& gpu : machine.answers.gpus) {
      gpu.gpu_direct_rdma = ways.rdma;
      gpu.dmabuf = ways.dmabuf;
    }
    for (doctor::RdmaAnswer& device : machine.answers.rdma) device.dmabuf_probe = ways.probe;
    if (!ways.peermem) remove_peermem(machine);
  };
}

Change both(Change first, Change then) {
  return [first = std::move(first), then = std::move(then)](Machine& machine) {
    first(machine);
    then(machine);
  };
}

// Nothing but the module is left, and it is not loaded.
const Ways needs_peermem = {.dmabuf = false, .peermem = false};

Change logs(const std::string& line) {
  return [line](Machine& machine) { machine.log(line); };
}

Change lists_modules(const std::string& dependencies) {
  return [dependencies](Machine& machine) {
    machine.tree.file("lib/modules/6.1.0-31-amd64/modules.dep", dependencies);
  };
}

void hide_modules(Machine& machine) {
  remove_peermem(machine);
  machine.tree.remove("proc/modules");
}

// What the four signs of the two ways lead to.
std::vector<Known> decisions() {
  return {
      fault("registers_nothing_without_peermem", offer({.dmabuf = false, .peermem = false, .probe = {}}),
            {"registration/peermem_missing", "peermem/missing", "dmabuf/gpu", "dmabuf/not_probed"}),
      fault("registers_dmabuf", offer({.peermem = false}), {"peermem/not_loaded"}),
      fault("registers_nothing_without_dmabuf_of_the_kernel",
            offer({.peermem = false, .probe = EPROTONOSUPPORT}),
            {"registration/rdma_side", "peermem/missing", "dmabuf/old_kernel"}),
      fault("registers_peermem", offer({.dmabuf = false, .probe = {}}), {"dmabuf/gpu", "dmabuf/not_probed"}),
      fault("geforce", offer({.rdma = false, .dmabuf = false, .probe = {}}),
            {"registration/gpu_unsupported"}),
      fault("geforce_without_peermem", offer({.rdma = false, .dmabuf = false, .peermem = false}),
            {"registration/gpu_unsupported"}),
      fault("registers_who_knows", both(offer({.dmabuf = false}), hide_modules),
            {"registration/unknown", "peermem/unknown", "dmabuf/gpu"}),
      fault("registers_as_was_tried",
            both(both(offer({.dmabuf = false}), hide_modules),
                 [](Machine& machine) {
                   for (const char* gpu : {"0000:1b:00.0", "0000:bb:00.0"})
                     for (const char* device : {"mlx5_0", "mlx5_1"})
                       machine.answers.probes.push_back({.what = "register cuda peermem",
                                                         .device = device,
                                                         .gpu = gpu,
                                                         .outcome = "passed",
                                                         .text = ""});
                 }),
            {"peermem/unknown", "dmabuf/gpu"}),
  };
}

std::vector<Known> module_faults() {
  const std::set<std::string> beside = {"registration/peermem_missing", "dmabuf/gpu"};
  const auto finds = [&](const std::string& finding) {
    std::set<std::string> all = beside;
    all.insert(finding);
    return all;
  };
  return {
      fault("without_peermem", remove_peermem, {"peermem/not_loaded"}),
      fault("without_proc_modules", hide_modules, {"peermem/unknown"}),
      // Each of the signs alone says that a module is loaded.
      fault("with_version_file_alone", [](Machine& machine) { machine.tree.remove("proc/modules"); }, {}),
      fault("with_legacy_peermem_alone",
            both(hide_modules,
                 [](Machine& machine) {
                   machine.tree.file("sys/kernel/mm/memory_peers/nv_mem/version", "1.3-0");
                 }),
            {}),
      fault("with_peermem_in_proc_modules_alone",
            [](Machine& machine) { machine.tree.remove("sys/module/nvidia_peermem"); }, {}),
      fault("peermem_of_another_abi",
            both(offer(needs_peermem), logs("[ 12.1] nvidia_peermem: disagrees about version of symbol "
                                            "ib_register_peer_memory_client")),
            finds("peermem/wrong_abi")),
      fault("peermem_without_interface_by_log",
            both(offer(needs_peermem),
                 logs("[ 12.1] nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -2)")),
            finds("peermem/no_api")),
      fault("peermem_without_interface_by_symbols",
            both(offer(needs_peermem),
                 [](Machine& machine) {
                   machine.tree.raw("proc/kallsyms", "0000000000000000 T ib_register_client\t[ib_core]\n");
                 }),
            finds("peermem/no_api")),
      fault("peermem_for_another_kernel",
            both(offer(needs_peermem), lists_modules("updates/dkms/nvidia.ko:")), finds("peermem/no_module")),
      fault("peermem_not_loaded_at_boot",
            both(offer(needs_peermem),
                 lists_modules("updates/dkms/nvidia-peermem.ko.xz: updates/dkms/nvidia.ko.xz")),
            finds("peermem/no_autoload")),
      fault("peermem_to_be_loaded_at_boot",
            both(both(offer(needs_peermem),
                      lists_modules("updates/dkms/nvidia-peermem.ko.xz: updates/dkms/nvidia.ko.xz")),
                 [](Machine& machine) {
                   machine.tree.file("etc/modules-load.d/nvidia.conf", "nvidia-peermem");
                 }),
            finds("peermem/missing")),
      fault("two_peermem_modules", [](Machine& machine) { machine.add_module("nv_peer_mem"); },
            {"peermem/two_modules"}),
      fault("peermem_of_another_version",
            [](Machine& machine) { machine.tree.file("sys/module/nvidia_peermem/version", "570.133.20"); },
            {"peermem/other_version"}),
  };
}

}  // namespace

std::vector<Known> registration_faults() {
  std::vector<Known> all = decisions();
  const std::vector<Known> modules = module_faults();
  all.insert(all.end(), modules.begin(), modules.end());
  return all;
}

}  // namespace gdrbench::machines
