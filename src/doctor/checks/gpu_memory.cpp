#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "doctor/check.hpp"
#include "doctor/checks/checks.hpp"
#include "doctor/facts/host.hpp"
#include "doctor/facts/kernel.hpp"
#include "verbs/memory_region.hpp"

namespace gdrbench::doctor {
namespace {

namespace peermem {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr std::string_view load_and_keep =
    "modprobe nvidia-peermem; echo nvidia-peermem >/etc/modules-load.d/nvidia-peermem.conf. Where modprobe "
    "says \"Invalid argument\" and the kernel log nothing, the module was built without peer-memory support: "
    "install NVIDIA's driver again, after OFED";
constexpr std::string_view built_after_ofed =
    "install NVIDIA's driver again, after OFED (DKMS: dkms remove and dkms install of the nvidia module), "
    "then modprobe nvidia-peermem; or register as dma-buf, which needs no module";

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "A peer-memory module is loaded."},
    {"not_loaded", Verdict::info,
     "No peer-memory module is loaded; none is needed, since GPU memory can be registered as dma-buf."},
    {"missing", Verdict::warn,
     "No peer-memory module is loaded, and dma-buf does not work for every GPU and NIC: ibv_reg_mr on GPU "
     "memory fails with EFAULT.",
     load_and_keep, "none; the module comes with NVIDIA's driver"},
    {"no_autoload", Verdict::warn,
     "The module nvidia-peermem is installed and nothing loads it at boot, so it is missing after each "
     "reboot, and ibv_reg_mr on GPU memory fails with EFAULT.",
     load_and_keep, "none; the module comes with NVIDIA's driver"},
    {"no_module", Verdict::warn,
     "This kernel has no module nvidia-peermem: NVIDIA's driver was installed for another kernel, or before "
     "OFED.",
     built_after_ofed},
    {"wrong_abi", Verdict::warn,
     "nvidia-peermem could not be loaded: it was built against another RDMA stack than the one that is "
     "running (the kernel log says \"disagrees about version of symbol\").",
     built_after_ofed},
    {"no_api", Verdict::warn,
     "This kernel's ib_core has no peer-memory interface, as in distribution kernels: nvidia-peermem cannot "
     "work with it.",
     "register as dma-buf (Linux 5.12 or later, NVIDIA's open kernel modules), or install NVIDIA's DOCA-OFED "
     "and then NVIDIA's driver again",
     "DOCA-OFED replaces the kernel's RDMA modules"},
    {"two_modules", Verdict::warn,
     "The legacy nv_peer_mem and nvidia-peermem are both loaded; they claim the same memory.",
     "rmmod nv_peer_mem, and remove its package nvidia-peer-memory-dkms",
     "running programs with registered GPU memory have to end first"},
    {"other_version", Verdict::warn,
     "The version of nvidia-peermem differs from the loaded NVIDIA driver: one was updated without the "
     "other.",
     "rmmod nvidia-peermem; modprobe nvidia-peermem; if both stay different, install the driver again",
     "running programs with registered GPU memory have to end first"},
    {"unknown", Verdict::unknown, "Whether a peer-memory module is loaded cannot be seen here.",
     "run the doctor outside the container, where /proc/modules can be read"},
};

constexpr Check check = {
    .name = "peermem",
    .question = "Can the RDMA driver get GPU memory from NVIDIA's driver (peer memory)?",
    .looks_at =
        "/sys/module/nvidia_peermem, /sys/kernel/mm/memory_peers, /proc/modules, /proc/kallsyms, the kernel "
        "log, /lib/modules/<release>/modules.dep, /etc/modules-load.d, /etc/modules",
    .layer = Layer::driver,
    .causes = causes,
    .run = run};

constexpr const char* client_call = "ib_register_peer_memory_client";
constexpr const char* version_file = "sys/module/nvidia_peermem/version";
constexpr const char* legacy_file = "sys/kernel/mm/memory_peers/nv_mem/version";

// A line about one of the peer-memory modules that has these words.
std::string log_line(const Answers& answers, std::string_view words) {
  const std::string log = answers.kernel_log.value_or("");
  for (const char* module : {"nvidia_peermem: ", "nv_peer_mem: "})
    if (std::string line = line_with(log, module + std::string(words)); !line.empty()) return line;
  return "";
}

// Any file that names the module and is read at boot.
bool is_loaded_at_boot(const topology::Root& root) {
  std::vector<std::string> files = {"etc/modules"};
  for (const char* folder : {"etc/modules-load.d", "usr/lib/modules-load.d"})
    for (const std::string& name : root.list(folder)) files.push_back(std::string(folder) + "/" + name);
  return std::any_of(files.begin(), files.end(), [&](const std::string& file) {
    std::string text = root.read(file).text;
    std::replace(text.begin(), text.end(), '-', '_');
    const std::string line = line_with(text, "nvidia_peermem");
    return !line.empty() && line.front() != '#';
  });
}

// Only where it matters: the kernel takes its time to write these megabytes.
bool kernel_lacks_interface(const topology::Root& root) {
  constexpr std::size_t max_symbol_bytes = 32 << 20;
  const topology::FileText symbols = root.read("proc/kallsyms", max_symbol_bytes);
  // Without ib_core there is nothing to judge by.
  return symbols.text.find("ib_register_client") != std::string::npos &&
         symbols.text.find(client_call) == std::string::npos;
}

Finding loaded(const Check& self, const topology::Root& root, std::vector<Evidence> seen) {
  const std::string modules = "\n" + root.read("proc/modules", 1 << 20).text;
  const bool has_both = modules.find("\nnv_peer_mem ") != std::string::npos &&
                        (modules.find("\nnvidia_peermem ") != std::string::npos || root.exists(version_file));
  if (has_both) return find(self, "two_modules", "", std::move(seen));
  const std::string version = root.read(version_file, 256).text;
  const std::string driver = root.read("sys/module/nvidia/version", 256).text;
  if (version.empty() || driver.empty() || version == driver) return find(self, "ok", "", std::move(seen));
  seen.push_back(evidence(root, "sys/module/nvidia/version"));
  return find(self, "other_version", "", std::move(seen));
}

Finding not_loaded(const Check& self, const Facts& facts, std::vector<Evidence> seen) {
  const topology::Root& root = facts.root;
  if (const std::string line = log_line(facts.answers, "disagrees about version of symbol"); !line.empty()) {
    seen.push_back({"kernel log", line});
    return find(self, "wrong_abi", "", std::move(seen));
  }
  if (dmabuf_works(facts.answers)) return find(self, "not_loaded", "", std::move(seen));
  if (const std::string line = log_line(facts.answers, std::string("Unknown symbol ") + client_call);
      !line.empty()) {
    seen.push_back({"kernel log", line});
    return find(self, "no_api", "", std::move(seen));
  }
  if (kernel_lacks_interface(root)) {
    seen.push_back({"/proc/kallsyms", std::string("has no ") + client_call});
    return find(self, "no_api", "", std::move(seen));
  }
  const ModuleState file = module_state(root, "nvidia_peermem");
  seen.push_back({fmt::format("/lib/modules/{}/modules.dep", kernel_release(root)),
                  fmt::format("nvidia-peermem {}", to_string(file))});
  if (file == ModuleState::absent) return find(self, "no_module", "", std::move(seen));
  if (file == ModuleState::available && !is_loaded_at_boot(root)) {
    seen.push_back({"/etc/modules-load.d, /etc/modules", "no nvidia-peermem"});
    return find(self, "no_autoload", "", std::move(seen));
  }
  return find(self, "missing", "", std::move(seen));
}

std::vector<Finding> run(const Check& self, const Facts& facts) {
  // Without a GPU that could use it, a module is of no use; why CUDA has none is the finding of another
  // check.
  if (facts.machine.gpus.empty() || !facts.answers.cuda_unavailable.empty() ||
      !some_gpu_supports_rdma(facts.answers))
    return {};
  std::vector<Evidence> seen = {evidence(facts.root, version_file), evidence(facts.root, legacy_file),
                                presence(facts.root, "proc/modules")};
  switch (verbs::peermem_loaded(facts.root.folder())) {
    case verbs::Loaded::yes:
      return {loaded(self, facts.root, std::move(seen))};
    case verbs::Loaded::no:
      return {not_loaded(self, facts, std::move(seen))};
    case verbs::Loaded::unknown:
      break;
  }
  return {find(self, "unknown", "", std::move(seen))};
}

}  // namespace peermem

namespace dmabuf {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr Version first_kernel{.major = 5, .minor = 12};

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "GPU and RDMA device both support dma-buf."},
    {"old_kernel", Verdict::warn,
     "The kernel's RDMA subsystem cannot register dma-bufs: that takes Linux 5.12 or later.",
     "update the kernel to 5.12 or later, install NVIDIA's DOCA-OFED, or use nvidia-peermem"},
    {"provider", Verdict::warn, "The driver of this RDMA device cannot register dma-bufs.",
     "update the kernel and rdma-core, or use nvidia-peermem; soft-RoCE has no dma-buf support at all"},
    {"proprietary_driver", Verdict::warn,
     "The GPU exports no dma-buf, because NVIDIA's proprietary kernel modules are loaded.",
     "install the open kernel modules (package nvidia-open, or nvidia-open-kernel-dkms of Debian) and reboot",
     "they support Turing and later GPUs only"},
    {"gpu", Verdict::warn,
     "The GPU exports no dma-buf: that takes a Turing or later GPU and driver 515 or later with its open "
     "kernel modules.",
     "update NVIDIA's driver and choose the open kernel modules, or use nvidia-peermem"},
    {"old_cuda", Verdict::warn,
     "The driver does not know the attribute DMA_BUF_SUPPORTED: it is older than CUDA 11.7.",
     "update NVIDIA's driver to 515 or later (open kernel modules), or use nvidia-peermem"},
    {"not_probed", Verdict::unknown, "Whether this RDMA device supports dma-buf was not probed.",
     "run gdrbench doctor on the machine itself, as a user who may open /dev/infiniband/uverbs*"},
};

constexpr Check check = {.name = "dmabuf",
                         .question = "Can GPU memory be registered as dma-buf?",
                         .looks_at =
                             "CUDA's attribute DMA_BUF_SUPPORTED, ibv_reg_dmabuf_mr with descriptor -1, "
                             "/proc/driver/nvidia/version, /proc/sys/kernel/osrelease",
                         .layer = Layer::driver,
                         .causes = causes,
                         .run = run};

std::string_view gpu_side(const GpuAnswer& gpu, const topology::Root& root) {
  if (!gpu.gpu_direct_rdma.value_or(true)) return "";  // unsupported, with or without dma-buf
  if (!gpu.dmabuf) return gpu.gpu_direct_rdma ? "old_cuda" : "";
  if (*gpu.dmabuf) return "";
  const topology::FileText version = root.read("proc/driver/nvidia/version", 4 << 10);
  const bool is_proprietary =
      version.present() && version.text.find("Open Kernel Module") == std::string::npos;
  return is_proprietary ? "proprietary_driver" : "gpu";
}

std::string errno_text(int errno_value) {
  switch (errno_value) {
    case EBADF:
      return "EBADF: supported";
    case EPROTONOSUPPORT:
      return "EPROTONOSUPPORT";
    case EOPNOTSUPP:
      return "EOPNOTSUPP";
    default:
      return fmt::format("errno {}", errno_value);
  }
}

void look_at_gpus(const Check& self, const Facts& facts, std::vector<Finding>& findings) {
  for (const GpuAnswer& gpu : facts.answers.gpus)
    if (const std::string_view cause = gpu_side(gpu, facts.root); !cause.empty())
      findings.push_back(
          find(self, cause, "GPU " + gpu.pci_address,
               {{"CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED", gpu.dmabuf ? "0" : "unknown to CUDA"},
                evidence(facts.root, "proc/driver/nvidia/version")}));
}

void look_at_rdma(const Check& self, const Facts& facts, std::vector<Finding>& findings) {
  const std::string release = kernel_release(facts.root);
  const std::optional<Version> kernel = version_in(release);
  std::vector<Evidence> refused;
  for (const RdmaAnswer& device : facts.answers.rdma) {
    // One that cannot be opened is the finding of another check.
    if (device.fabric != "hardware" || device.open_errno.value_or(0) != 0) continue;
    if (device.dmabuf_probe == EBADF) continue;
    const std::string source = fmt::format("ibv_reg_dmabuf_mr(fd -1) on {}", device.device);
    const bool is_old = kernel && *kernel < first_kernel;
    if (device.dmabuf_probe == EPROTONOSUPPORT || (is_old && !device.dmabuf_probe)) {
      refused.push_back({source, device.dmabuf_probe ? errno_text(*device.dmabuf_probe) : "not probed"});
    } else if (!device.dmabuf_probe) {
      findings.push_back(find(self, "not_probed", device.device, {{source, "not probed"}}));
    } else {
      findings.push_back(find(self, "provider", device.device, {{source, errno_text(*device.dmabuf_probe)}}));
    }
  }
  if (refused.empty()) return;
  refused.push_back(evidence(facts.root, "proc/sys/kernel/osrelease"));
  findings.push_back(find(self, "old_kernel", "", std::move(refused)));
}

std::vector<Finding> run(const Check& self, const Facts& facts) {
  // Without GPUs, or with none that could do it, dma-bufs are of no use.
  if (facts.answers.gpus.empty() || !some_gpu_supports_rdma(facts.answers)) return {};
  std::vector<Finding> findings;
  look_at_gpus(self, facts, findings);
  look_at_rdma(self, facts, findings);
  if (findings.empty()) findings.push_back(find(self, "ok", "", {}));
  return findings;
}

}  // namespace dmabuf

namespace registration {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "GPU memory can be registered with the NIC."},
    {"gpu_unsupported", Verdict::fail,
     "This GPU does not support GPUDirect RDMA (GeForce GPUs do not): no module and no setting changes that.",
     "use the staged paths (--paths tcp,rdma), or a data-center or professional GPU"},
    {"peermem_missing", Verdict::fail,
     "GPU memory can be registered neither way: the GPU exports no dma-buf, and no peer-memory module is "
     "loaded. ibv_reg_mr on GPU memory fails with EFAULT.",
     "modprobe nvidia-peermem, or install NVIDIA's open kernel modules, which export dma-bufs",
     "none of the module; open kernel modules need a reboot and support Turing and later GPUs only"},
    {"rdma_side", Verdict::fail,
     "GPU memory can be registered neither way: the RDMA side lacks dma-buf support, and no peer-memory "
     "module is loaded.",
     "modprobe nvidia-peermem, or update kernel (5.12 or later) and rdma-core for dma-buf",
     "none of the module; a new kernel needs a reboot"},
    {"no_vmm", Verdict::info,
     "This GPU offers no RDMA-capable memory by cuMemCreate: --memory cuda_vmm cannot use gdr, --memory cuda "
     "can."},
    {"unknown", Verdict::unknown,
     "Without dma-buf a peer-memory module is needed, and whether one is loaded cannot be seen here.",
     "run the doctor outside the container, or let it probe: gdrbench doctor without --no-probes"},
};

constexpr Check check = {
    .name = "registration",
    .question = "Can GPU memory be registered with a NIC, and which way?",
    .looks_at =
        "CUDA's attributes GPU_DIRECT_RDMA_SUPPORTED and DMA_BUF_SUPPORTED, ibv_reg_dmabuf_mr with "
        "descriptor -1, the peer-memory module, registrations that were tried",
    .layer = Layer::driver,
    .causes = causes,
    .run = run};

std::string_view word(verbs::Loaded loaded) {
  switch (loaded) {
    case verbs::Loaded::yes:
      return "loaded";
    case verbs::Loaded::no:
      return "not loaded";
    case verbs::Loaded::unknown:
      break;
  }
  return "cannot be seen";
}

std::string word(const std::optional<bool>& attribute) {
  if (!attribute) return "unknown to CUDA";
  return *attribute ? "1" : "0";
}

std::string probe_word(const std::optional<int>& errno_value) {
  if (!errno_value) return "not probed";
  switch (*errno_value) {
    case EBADF:
      return "EBADF: supported";
    case EPROTONOSUPPORT:
      return "EPROTONOSUPPORT: the kernel lacks it";
    case EOPNOTSUPP:
      return "EOPNOTSUPP: the provider lacks it";
    default:
      return fmt::format("errno {}", *errno_value);
  }
}

bool was_registered(const Answers& answers, const GpuAnswer& gpu, const RdmaAnswer& device) {
  return std::any_of(answers.probes.begin(), answers.probes.end(), [&](const ProbeResult& probe) {
    return probe.gpu == gpu.pci_address && probe.device == device.device &&
           probe.what.starts_with("register cuda") && probe.outcome == "passed";
  });
}

std::string_view decide(const GpuAnswer& gpu, const RdmaAnswer& device, verbs::Loaded peermem,
                        std::string& reason) {
  // A driver that does not know the attribute exports none.
  const verbs::GpuRegistrationFacts facts = {.gpu_direct_rdma = gpu.gpu_direct_rdma.value_or(true),
                                             .gpu_dmabuf = gpu.dmabuf.value_or(false),
                                             .peermem = peermem,
                                             .dmabuf_probe = device.dmabuf_probe};
  const verbs::GpuRegistrationAdvice advice = verbs::advise(facts);
  reason = advice.reason;
  if (!facts.gpu_direct_rdma) return "gpu_unsupported";
  if (advice.way == Registration::dmabuf) return "ok";
  if (advice.way == Registration::peermem) return peermem == verbs::Loaded::yes ? "ok" : "unknown";
  return facts.gpu_dmabuf ? "rdma_side" : "peermem_missing";
}

void add(std::vector<Evidence>& list, Evidence one) {
  const bool is_there = std::any_of(list.begin(), list.end(), [&](const Evidence& other) {
    return other.source == one.source && other.value == one.value;
  });
  if (!is_there) list.push_back(std::move(one));
}

// One finding for each cause: of sixteen GPUs and NICs all pairs would say the same.
std::vector<Finding> run(const Check& self, const Facts& facts) {
  const verbs::Loaded peermem = verbs::peermem_loaded(facts.root.folder());
  struct Pairs {
    std::vector<std::string> names;
    std::vector<Evidence> seen;
  };
  std::map<std::string_view, Pairs> by_cause;
  std::size_t pairs = 0;
  for (const GpuAnswer& gpu : facts.answers.gpus)
    for (const RdmaAnswer& device : facts.answers.rdma) {
      // What cannot be opened is the finding of another check.
      if (device.fabric != "hardware" || device.open_errno.value_or(0) != 0) continue;
      ++pairs;
      std::string reason;
      std::string_view cause = decide(gpu, device, peermem, reason);
      if (cause != "ok" && was_registered(facts.answers, gpu, device)) cause = "ok";
      Pairs& found = by_cause[cause];
      found.names.push_back(fmt::format("GPU {} with {}", gpu.pci_address, device.device));
      const std::string of_gpu = " of GPU " + gpu.pci_address;
      add(found.seen, {"CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED" + of_gpu, word(gpu.gpu_direct_rdma)});
      add(found.seen, {"CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED" + of_gpu, word(gpu.dmabuf)});
      add(found.seen, {"ibv_reg_dmabuf_mr(fd -1) on " + device.device, probe_word(device.dmabuf_probe)});
      add(found.seen, {"peer-memory module", std::string(word(peermem))});
      if (cause != "ok") add(found.seen, {"decision", reason});
    }
  std::vector<Finding> findings;
  for (const GpuAnswer& gpu : facts.answers.gpus)
    if (pairs != 0 && gpu.gpu_direct_rdma.value_or(true) && !gpu.vmm_rdma.value_or(true))
      findings.push_back(
          find(self, "no_vmm", "GPU " + gpu.pci_address,
               {{"CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED", word(gpu.vmm_rdma)}}));
  for (const auto& [cause, found] : by_cause) {
    const bool concerns_all = found.names.size() == pairs;
    findings.push_back(
        find(self, cause, concerns_all ? "" : fmt::format("{}", fmt::join(found.names, ", ")), found.seen));
  }
  return findings;
}

}  // namespace registration

}  // namespace

CheckList gpu_memory_checks() {
  static constexpr const Check* list[] = {&peermem::check, &dmabuf::check, &registration::check};
  return list;
}

}  // namespace gdrbench::doctor
