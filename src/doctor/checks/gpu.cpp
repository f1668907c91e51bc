#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "doctor/check.hpp"
#include "doctor/checks/checks.hpp"
#include "doctor/facts/host.hpp"

namespace gdrbench::doctor {
namespace {

namespace gpu {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "CUDA sees every NVIDIA GPU of this machine."},
    {"no_gpu", Verdict::info,
     "There is no NVIDIA GPU on this machine's PCI buses: host memory stands in for GPU memory."},
    {"no_pci", Verdict::unknown, "The PCI buses cannot be seen, so neither can GPUs on them.",
     "run the doctor outside the container, or mount /sys into it"},
    {"wsl2", Verdict::fail,
     "This is the Windows Subsystem for Linux (WSL 2): its GPU driver has no GPUDirect RDMA, whatever the "
     "attributes say.",
     "run native Linux on this machine"},
    {"not_asked", Verdict::unknown, "CUDA was not queried for this machine's GPUs.",
     "run gdrbench doctor on the machine itself; with --record DIR it makes a snapshot that has CUDA's "
     "answers"},
    {"no_cuda_support", Verdict::unknown,
     "This gdrbench was built without the CUDA Toolkit and cannot query GPUs.",
     "install the CUDA Toolkit (12 or later) and build again: cmake --preset release && cmake --build "
     "build/release"},
    {"nouveau", Verdict::fail,
     "The nouveau driver is bound to the GPU, so NVIDIA's driver, and with it CUDA, cannot use it.",
     "echo 'blacklist nouveau' >/etc/modprobe.d/nouveau.conf; update-initramfs -u (RHEL: dracut -f); reboot",
     "a console on this GPU loses its graphics until NVIDIA's driver is installed"},
    {"given_to_guest", Verdict::fail, "The GPU is reserved for a virtual machine (driver vfio-pci).",
     "run gdrbench in that virtual machine, or take the GPU back: echo "
     ">/sys/bus/pci/devices/{}/driver_override; echo {} >/sys/bus/pci/drivers/vfio-pci/unbind; modprobe "
     "nvidia; echo {} >/sys/bus/pci/drivers_probe",
     "the virtual machine that uses the GPU loses it"},
    {"driver_missing", Verdict::fail, "NVIDIA's kernel driver is not loaded, so CUDA finds no GPU.",
     "modprobe nvidia; if there is no such module, install the driver (open kernel modules): package "
     "nvidia-open, or nvidia-open-kernel-dkms of Debian. Secure Boot refuses unsigned modules: see the "
     "kernel log"},
    {"device_nodes", Verdict::fail,
     "NVIDIA's driver is loaded, but its device nodes are missing: this container was not given the GPUs.",
     "start the container with the NVIDIA Container Toolkit (docker run --gpus all); outside of containers: "
     "nvidia-modprobe -c 0 -u"},
    {"libcuda_missing", Verdict::fail,
     "The kernel driver is loaded, but the CUDA driver library (libcuda.so.1) is missing.",
     "install libcuda.so.1 of the same version as the kernel driver (Debian: libcuda1; Ubuntu: "
     "libnvidia-compute-…); in a container: NVIDIA_DRIVER_CAPABILITIES=compute,utility"},
    {"version_mismatch", Verdict::fail,
     "The CUDA driver library and the kernel module are of different versions: the driver was updated and "
     "the old module is still loaded, or a container brings its own library.",
     "reboot, or unload and reload the nvidia modules; in a container remove its own libcuda.so.1",
     "programs that use the GPUs have to end first"},
    {"driver_too_old", Verdict::fail, "The NVIDIA driver is too old for the CUDA runtime of this build.",
     "update NVIDIA's driver, or build gdrbench with an older CUDA Toolkit (12.0 at least)"},
    {"fabric_manager", Verdict::fail,
     "The GPUs wait for their NVSwitch fabric: the fabric manager is not running, or its version differs "
     "from the driver's.",
     "systemctl enable --now nvidia-fabricmanager; its version has to match the driver"},
    {"visible_devices", Verdict::fail, "CUDA_VISIBLE_DEVICES hides every GPU from this process.",
     "unset CUDA_VISIBLE_DEVICES, or name GPUs that exist (nvidia-smi -L); under a batch system request a "
     "GPU with the job"},
    {"cuda_fails", Verdict::fail, "There is an NVIDIA GPU, but CUDA finds none.",
     "check nvidia-smi and the kernel log (dmesg | grep NVRM)"},
    {"needs_flush", Verdict::info,
     "This GPU does not order a NIC's writes: a completion does not mean that a kernel sees the data, so "
     "gdrbench flushes before it reads (reported as a figure of its own)."},
    {"hidden", Verdict::info, "CUDA shows this process fewer GPUs than there are on the PCI buses.",
     "if that is not intended: unset CUDA_VISIBLE_DEVICES, start the container with --gpus all"},
};

constexpr Check check = {
    .name = "gpu",
    .question = "Does CUDA see the GPUs that the machine has?",
    .looks_at =
        "CUDA, /sys/bus/pci/devices, /proc/driver/nvidia/version, /dev/nvidiactl, /proc/sys/kernel/osrelease",
    .layer = Layer::platform,
    .causes = causes,
    .run = run};

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

}  // namespace gpu

namespace driver {

std::vector<Finding> run(const Check& self, const Facts& facts);

// The first driver with open kernel modules, which dma-buf export needs; nvidia-peermem is older (470).
constexpr Version first_with_dmabuf{.major = 515};

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "NVIDIA's open kernel modules are loaded."},
    {"proprietary", Verdict::info,
     "NVIDIA's proprietary kernel modules are loaded: they export no dma-bufs, so only nvidia-peermem "
     "works."},
    {"too_old", Verdict::warn,
     "NVIDIA's driver is older than 515, the first that exports GPU memory as dma-buf.",
     "update NVIDIA's driver and choose its open kernel modules (for Turing and later GPUs)",
     "programs that use the GPUs have to end first"},
    {"flavour_unknown", Verdict::unknown, "Whether NVIDIA's open kernel modules are loaded cannot be seen.",
     "cat /proc/driver/nvidia/version outside the container"},
};

constexpr Check check = {.name = "driver",
                         .question = "Which of NVIDIA's kernel modules are loaded, open or proprietary?",
                         .looks_at = "/proc/driver/nvidia/version",
                         .layer = Layer::driver,
                         .causes = causes,
                         .run = run};

// What follows the words "Kernel Module" or, of the open ones, "x86_64": the first number with a dot.
std::optional<Version> driver_version(const std::string& text) {
  for (std::size_t at = 0; at < text.size() && text[at] != '\n';) {
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string word = text.substr(at, end - at);
    if (word.find('.') != std::string::npos)
      if (const std::optional<Version> version = version_in(word)) return version;
    at = end == text.size() || text[end] == '\n' ? end : end + 1;
  }
  return std::nullopt;
}

std::vector<Finding> run(const Check& self, const Facts& facts) {
  if (facts.machine.gpus.empty()) return {};
  const topology::FileText version = facts.root.read("proc/driver/nvidia/version", 4 << 10);
  if (!version.present()) {
    // Without the driver at all, that is the finding of another check.
    if (!facts.root.exists("sys/module/nvidia")) return {};
    return {find(self, "flavour_unknown", "", {evidence(facts.root, "proc/driver/nvidia/version")})};
  }
  const std::vector<Evidence> seen = {
      {"/proc/driver/nvidia/version", version.text.substr(0, version.text.find('\n'))}};
  const std::optional<Version> number = driver_version(version.text);
  if (number && *number < first_with_dmabuf) return {find(self, "too_old", "", seen)};
  const bool is_open = version.text.find("Open Kernel Module") != std::string::npos;
  return {find(self, is_open ? "ok" : "proprietary", "", seen)};
}

}  // namespace driver

namespace driver_answers {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "CUDA and libibverbs respond."},
    {"crashed", Verdict::fail,
     "A driver library crashed the process that called it, as it will every program that uses it.",
     "dmesg | tail -50; install the user-space libraries of exactly the version of the kernel modules "
     "(compare nvidia-smi, /proc/driver/nvidia/version, and ofed_info or the rdma-core package)",
     "programs that run on the old libraries have to be restarted"},
    {"hangs", Verdict::fail, "A driver did not respond: GPU, NIC or their kernel modules hang.",
     "dmesg | grep -E 'Xid|mlx5|hung'; nvidia-smi; if these hang too, reset the device or reboot",
     "a reset or reboot ends everything that uses the device"},
    {"failed", Verdict::warn, "A driver call failed.",
     "nvidia-smi and ibv_devinfo -v make the same calls; the evidence says which one failed"},
};

constexpr Check check = {.name = "driver_answers",
                         .question = "Do CUDA and libibverbs respond at all?",
                         .looks_at = "what they return, each in a process of its own",
                         .layer = Layer::driver,
                         .causes = causes,
                         .run = run};

std::vector<Finding> run(const Check& self, const Facts& facts) {
  std::vector<Finding> findings;
  for (const ProbeResult& probe : facts.answers.probes) {
    if (!probe.what.starts_with("ask ")) continue;
    const char* const cause = probe.outcome == "crashed"     ? "crashed"
                              : probe.outcome == "timed out" ? "hangs"
                                                             : "failed";
    const std::string subject = !probe.device.empty()      ? probe.device
                                : probe.what == "ask cuda" ? "CUDA"
                                                           : "libibverbs";
    findings.push_back(find(self, cause, subject, {probe_evidence(probe)}));
  }
  if (findings.empty() && facts.answers.verbs_queried) findings.push_back(find(self, "ok", "", {}));
  return findings;
}

}  // namespace driver_answers

}  // namespace

CheckList gpu_checks() {
  static constexpr const Check* list[] = {&gpu::check, &driver::check, &driver_answers::check};
  return list;
}

}  // namespace gdrbench::doctor
