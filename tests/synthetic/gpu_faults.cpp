#include <cerrno>
#include <optional>

#include "synthetic/faults.hpp"

namespace gdrbench::synthetic {
namespace {

std::vector<Scenario> cuda_faults() {
  const auto silent = [](const std::string& why) { return [why](Machine& m) { silence_cuda(m, why); }; };
  return {
      fault("without_gpus", remove_gpus, {"gpu/no_gpu"}),
      fault("without_pci",
            [](Machine& m) {
              remove_gpus(m);
              m.tree.remove("sys/bus/pci");
            },
            {"gpu/no_pci"}),
      fault("in_wsl2",
            [](Machine& m) {
              m.tree.file("proc/sys/kernel/osrelease", "5.15.153.1-microsoft-standard-WSL2");
              m.tree.raw("dev/dxg", "");
            },
            {"gpu/wsl2"}),
      fault("that_nobody_asked", [](Machine& m) { m.answers.gpus.clear(); }, {"gpu/not_asked"}),
      fault("build_without_cuda", silent("built without the CUDA Toolkit"), {"gpu/no_cuda_support"}),
      fault("nouveau",
            [](Machine& m) {
              silence_cuda(m, "the CUDA driver finds no GPU");
              bind_gpus_to(m, "nouveau");
            },
            {"gpu/nouveau"}),
      fault("gpus_given_to_guest",
            [](Machine& m) {
              silence_cuda(m, "the CUDA driver finds no GPU");
              bind_gpus_to(m, "vfio-pci");
            },
            {"gpu/given_to_guest"}),
      fault("without_driver",
            [](Machine& m) {
              silence_cuda(
                  m, "no CUDA driver (libcuda.so.1 is not installed, or not mapped into this container)");
              remove_driver(m);
            },
            {"gpu/driver_missing"}),
      fault("container_without_gpus",
            [](Machine& m) {
              silence_cuda(m, "the CUDA driver finds no GPU (is one mapped into this container?)");
              for (const char* node : {"nvidiactl", "nvidia-uvm", "nvidia0", "nvidia1"})
                m.tree.remove(std::string("dev/") + node);
            },
            {"gpu/device_nodes"}),
      fault("without_libcuda",
            silent("no CUDA driver (libcuda.so.1 is not installed, or not mapped into this container)"),
            {"gpu/libcuda_missing"}),
      fault("version_mismatch",
            silent("cudaGetDeviceCount: cudaErrorSystemDriverMismatch (system has unsupported "
                   "display driver / cuda driver combination)"),
            {"gpu/version_mismatch"}),
      fault("old_driver_for_cuda",
            silent("the CUDA driver is too old: it supports CUDA 11.4, this build needs 13.0"),
            {"gpu/driver_too_old"}),
      fault("without_fabric_manager",
            silent("cudaGetDeviceCount: cudaErrorSystemNotReady (system not yet initialized)"),
            {"gpu/fabric_manager"}),
      fault("hidden_gpus", silent("the CUDA driver finds no GPU (CUDA_VISIBLE_DEVICES is '')"),
            {"gpu/visible_devices"}),
      fault("cuda_fails", silent("cudaGetDeviceCount: cudaErrorUnknown (unknown error)"), {"gpu/cuda_fails"}),
      fault("with_a_hidden_gpu", [](Machine& m) { m.answers.gpus.pop_back(); }, {"gpu/hidden"}),
  };
}

std::vector<Scenario> driver_faults() {
  return {
      fault("gpu_without_write_order", [](Machine& m) { m.gpu(first_gpu).writes_ordering = 0; },
            {"gpu/needs_flush"}),
      fault("gpu_without_vmm_for_rdma", [](Machine& m) { m.gpu(first_gpu).vmm_rdma = false; },
            {"registration/no_vmm"}),
      fault("proprietary_driver",
            [](Machine& m) {
              m.add_nvidia_driver(false);
              for (doctor::GpuAnswer& gpu : m.answers.gpus) gpu.dmabuf = false;
            },
            {"driver/proprietary", "dmabuf/proprietary_driver"}),
      fault("old_driver",
            [](Machine& m) {
              m.tree.file(
                  "proc/driver/nvidia/version",
                  "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.256.02  Thu May  2 14:37:44 UTC 2024");
              m.tree.file("sys/module/nvidia/version", "470.256.02");
              m.tree.file("sys/module/nvidia_peermem/version", "470.256.02");
              for (doctor::GpuAnswer& gpu : m.answers.gpus) gpu.dmabuf.reset();
            },
            {"driver/too_old", "dmabuf/old_cuda"}),
      fault("hidden_driver_files",
            [](Machine& m) {
              m.tree.remove("proc/driver");
              m.tree.folder("sys/module/nvidia");
            },
            {"driver/flavour_unknown"}),
      fault("gpus_without_dmabuf",
            [](Machine& m) {
              for (doctor::GpuAnswer& gpu : m.answers.gpus) gpu.dmabuf = false;
            },
            {"dmabuf/gpu"}),
      fault("old_kernel",
            [](Machine& m) {
              m.tree.file("proc/sys/kernel/osrelease", "5.4.0-190-generic");
              for (doctor::RdmaAnswer& device : m.answers.rdma) device.dmabuf_probe = EPROTONOSUPPORT;
            },
            {"dmabuf/old_kernel"}),
      fault("provider_without_dmabuf", [](Machine& m) { m.rdma("mlx5_0").dmabuf_probe = EOPNOTSUPP; },
            {"dmabuf/provider"}),
      fault("without_dmabuf_probe", [](Machine& m) { m.rdma("mlx5_0").dmabuf_probe.reset(); },
            {"dmabuf/not_probed"}),
  };
}

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
std::vector<Scenario> registration_decisions() {
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

std::vector<Scenario> peermem_faults() {
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

std::vector<Scenario> gpu_faults() {
  std::vector<Scenario> all;
  for (const auto& list : {cuda_faults(), driver_faults(), registration_decisions(), peermem_faults()})
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace gdrbench::synthetic
