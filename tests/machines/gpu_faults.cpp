#include <cerrno>

#include "machines/platform_changes.hpp"

namespace gdrbench::machines {
namespace {

constexpr const char* gpu0 = "0000:1b:00.0";  // of dgx()

std::vector<Known> cuda_faults() {
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

std::vector<Known> driver_faults() {
  return {
      fault("gpu_without_write_order", [](Machine& m) { m.gpu(gpu0).writes_ordering = 0; },
            {"gpu/needs_flush"}),
      fault("gpu_without_vmm_for_rdma", [](Machine& m) { m.gpu(gpu0).vmm_rdma = false; },
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

}  // namespace

std::vector<Known> gpu_faults() {
  std::vector<Known> all = cuda_faults();
  const std::vector<Known> driver = driver_faults();
  all.insert(all.end(), driver.begin(), driver.end());
  return all;
}

}  // namespace gdrbench::machines
