#include <algorithm>

#include "doctor/check_list.hpp"
#include "doctor/evidence.hpp"
#include "doctor/host.hpp"

namespace gdrbench::doctor {
namespace {

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "CUDA sees every NVIDIA GPU of this machine."},
    {"no_gpu", Verdict::info,
     "There is no NVIDIA GPU on this machine's PCI buses: host memory stands in for GPU memory."},
    {"no_pci", Verdict::unknown, "The PCI buses cannot be seen, so neither can GPUs on them.",
     "run the doctor outside the container, or mount /sys into it"},
    {"wsl2", Verdict::fail,
     "This is Windows' subsystem for Linux: its GPU driver has no GPUDirect RDMA, whatever the attributes "
     "say.",
     "run Linux itself on this machine"},
    {"not_asked", Verdict::unknown, "Nobody asked CUDA about this machine's GPUs.",
     "run gdrbench doctor on the machine itself; with --record DIR it makes a snapshot that has CUDA's "
     "answers"},
    {"no_cuda_support", Verdict::unknown,
     "This gdrbench was built without the CUDA Toolkit and cannot ask about GPUs.",
     "install the CUDA Toolkit (12 or later) and build again: cmake --preset release && cmake --build "
     "build/release"},
    {"nouveau", Verdict::fail,
     "The nouveau driver holds the GPU, so NVIDIA's driver, and with it CUDA, cannot have it.",
     "echo 'blacklist nouveau' >/etc/modprobe.d/nouveau.conf; update-initramfs -u (RHEL: dracut -f); reboot",
     "a console on this GPU loses its graphics until NVIDIA's driver is there"},
    {"given_to_guest", Verdict::fail, "The GPU is set aside for a virtual machine (driver vfio-pci).",
     "run gdrbench in that virtual machine, or take the GPU back: echo "
     ">/sys/bus/pci/devices/{}/driver_override; "
     "echo {} >/sys/bus/pci/drivers/vfio-pci/unbind; modprobe nvidia; echo {} >/sys/bus/pci/drivers_probe",
     "the virtual machine that uses the GPU loses it"},
    {"driver_missing", Verdict::fail, "NVIDIA's kernel driver is not loaded, so CUDA finds no GPU.",
     "modprobe nvidia; where there is no such module, install the driver (open kernel modules): package "
     "nvidia-open, or nvidia-open-kernel-dkms of Debian. Secure Boot refuses modules without a signature: "
     "look at the kernel log"},
    {"device_nodes", Verdict::fail,
     "NVIDIA's driver is loaded, but its device nodes are not here: this container was not given the GPUs.",
     "start the container with the NVIDIA Container Toolkit (docker run --gpus all); outside of containers: "
     "nvidia-modprobe -c 0 -u"},
    {"libcuda_missing", Verdict::fail, "The kernel driver is there, but the CUDA driver's library is not.",
     "install libcuda.so.1 of the same version as the kernel driver (Debian: libcuda1; Ubuntu: "
     "libnvidia-compute-…); in a container: NVIDIA_DRIVER_CAPABILITIES=compute,utility"},
    {"version_mismatch", Verdict::fail,
     "The CUDA library and the kernel module are of different versions: the driver was updated and the old "
     "module is still loaded, or a container brings a library of its own.",
     "reboot, or unload and load the nvidia modules; in a container remove its own libcuda.so.1",
     "programs that use the GPUs have to end before"},
    {"driver_too_old", Verdict::fail, "The NVIDIA driver is older than the CUDA runtime of this build needs.",
     "update NVIDIA's driver, or build gdrbench with an older CUDA Toolkit (12.0 at least)"},
    {"fabric_manager", Verdict::fail,
     "The GPUs wait for their NVSwitch fabric: the fabric manager is not running, or not of the driver's "
     "version.",
     "systemctl enable --now nvidia-fabricmanager; its version has to be that of the driver"},
    {"visible_devices", Verdict::fail, "CUDA_VISIBLE_DEVICES hides every GPU from this process.",
     "unset CUDA_VISIBLE_DEVICES, or name GPUs that exist (nvidia-smi -L); under a batch system ask for a "
     "GPU "
     "with the job"},
    {"cuda_fails", Verdict::fail, "There is an NVIDIA GPU, and CUDA finds none.",
     "look at nvidia-smi and the kernel log (dmesg | grep NVRM)"},
    {"needs_flush", Verdict::info,
     "This GPU gives no order to a NIC's writes: a completion does not mean that a kernel sees the data, and "
     "gdrbench flushes before it looks (its figure is reported apart)."},
    {"hidden", Verdict::info, "CUDA shows this process fewer GPUs than the PCI buses have.",
     "where that is not intended: unset CUDA_VISIBLE_DEVICES, start the container with --gpus all"},
};

bool is_wsl(const topology::Root& root) {
  const std::string release = root.read("proc/sys/kernel/osrelease", 256).text;
  return release.find("icrosoft") != std::string::npos || root.exists("dev/dxg");
}

// The first of the causes that explains why CUDA has no GPU.
std::string_view cause_of_silence(const Facts& facts) {
  const auto says = [&](std::string_view words) {
    return facts.answers.cuda_unavailable.find(words) != std::string::npos;
  };
  const auto all_have = [&](std::string_view driver) {
    return std::all_of(facts.machine.gpus.begin(), facts.machine.gpus.end(),
                       [driver](const topology::Gpu& gpu) { return gpu.pci.driver == driver; });
  };
  if (says("built without")) return "no_cuda_support";
  if (all_have("nouveau")) return "nouveau";
  if (all_have("vfio-pci")) return "given_to_guest";
  const bool has_driver =
      facts.root.exists("proc/driver/nvidia/version") || facts.root.exists("sys/module/nvidia");
  if (!has_driver) return "driver_missing";
  if (!facts.root.exists("dev/nvidiactl")) return "device_nodes";
  if (says("libcuda")) return "libcuda_missing";
  if (says("Mismatch") || says("mismatch")) return "version_mismatch";
  if (says("too old")) return "driver_too_old";
  if (says("NotReady") || says("not yet initialized")) return "fabric_manager";
  if (says("CUDA_VISIBLE_DEVICES is")) return "visible_devices";
  return "cuda_fails";
}

std::vector<Evidence> evidence_of(const Facts& facts) {
  std::vector<Evidence> seen = {{"CUDA", facts.answers.cuda_unavailable}};
  for (const topology::Gpu& gpu : facts.machine.gpus)
    seen.push_back({"/sys/bus/pci/devices/" + gpu.pci.address + "/driver",
                    gpu.pci.driver.empty() ? "none" : gpu.pci.driver});
  for (const char* path : {"proc/driver/nvidia/version", "dev/nvidiactl"})
    seen.push_back(presence(facts.root, path));
  return seen;
}

std::vector<Finding> run(const Check& self, const Facts& facts) {
  if (is_wsl(facts.root))
    return {find(self, "wsl2", "",
                 {evidence(facts.root, "proc/sys/kernel/osrelease"), presence(facts.root, "dev/dxg")})};
  const std::size_t on_bus = facts.machine.gpus.size(), in_cuda = facts.answers.gpus.size();
  if (in_cuda == 0 && on_bus == 0) {
    const bool sees_bus = !facts.root.list("sys/bus/pci/devices").empty() || facts.root.exists("sys/bus/pci");
    return {find(self, sees_bus ? "no_gpu" : "no_pci", "",
                 {{"/sys/bus/pci/devices", sees_bus ? "no function of NVIDIA's" : "absent"}})};
  }
  if (in_cuda == 0 && facts.answers.cuda_unavailable.empty())
    return {find(self, "not_asked", "", {{"CUDA", "no answer"}})};
  if (in_cuda == 0) {
    const std::string_view cause = cause_of_silence(facts);
    return {find(self, cause, facts.machine.gpus.front().pci.address, evidence_of(facts))};
  }
  const std::vector<Evidence> counts = {{"CUDA", std::to_string(in_cuda) + " GPUs"},
                                        {"/sys/bus/pci/devices", std::to_string(on_bus) + " GPUs"}};
  std::vector<Finding> findings = {find(self, in_cuda < on_bus ? "hidden" : "ok", "", counts)};
  for (const GpuAnswer& gpu : facts.answers.gpus)
    if (gpu.writes_ordering == 0)
      findings.push_back(find(self, "needs_flush", "GPU " + gpu.pci_address,
                              {{"cudaDevAttrGPUDirectRDMAWritesOrdering", "0 (none)"}}));
  return findings;
}

}  // namespace

const Check gpu_check = {.name = "gpu",
                         .question = "Does CUDA see the GPUs that the machine has?",
                         .looks_at =
                             "CUDA, /sys/bus/pci/devices, /proc/driver/nvidia/version, /dev/nvidiactl, "
                             "/proc/sys/kernel/osrelease",
                         .layer = Layer::platform,
                         .causes = causes,
                         .run = run};

}  // namespace gdrbench::doctor
