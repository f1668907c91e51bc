#include <fmt/format.h>

#include <algorithm>

#include "doctor/check_list.hpp"
#include "doctor/evidence.hpp"
#include "doctor/host.hpp"
#include "doctor/kernel_modules.hpp"
#include "verbs/gpu_registration.hpp"

namespace gdrbench::doctor {
namespace {

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
     "No peer-memory module is loaded, and dma-buf does not serve every GPU and NIC: ibv_reg_mr on GPU "
     "memory "
     "fails with EFAULT.",
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
     "nvidia-peermem could not be loaded: it was built against another RDMA stack than the one that runs "
     "(the kernel log says \"disagrees about version of symbol\").",
     built_after_ofed},
    {"no_api", Verdict::warn,
     "This kernel's ib_core has no peer-memory interface, as those of distributions: nvidia-peermem cannot "
     "work with it.",
     "register as dma-buf (Linux 5.12 or later, NVIDIA's open kernel modules), or install NVIDIA's DOCA-OFED "
     "and then NVIDIA's driver again",
     "DOCA-OFED replaces the kernel's RDMA modules"},
    {"two_modules", Verdict::warn,
     "The legacy nv_peer_mem and nvidia-peermem are both loaded; they claim the same memory.",
     "rmmod nv_peer_mem, and remove its package nvidia-peer-memory-dkms",
     "running programs with registered GPU memory have to end before"},
    {"other_version", Verdict::warn,
     "nvidia-peermem is of another version than the loaded NVIDIA driver: one was updated without the other.",
     "rmmod nvidia-peermem; modprobe nvidia-peermem; where both stay different, install the driver again",
     "running programs with registered GPU memory have to end before"},
    {"unknown", Verdict::unknown, "Whether a peer-memory module is loaded cannot be seen here.",
     "run the doctor outside the container, where /proc/modules can be read"},
};

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
  constexpr std::size_t most_symbols = 32 << 20;
  const topology::FileText symbols = root.read("proc/kallsyms", most_symbols);
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
  if (dmabuf_serves(facts.answers)) return find(self, "not_loaded", "", std::move(seen));
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

}  // namespace

const Check peermem_check = {
    .name = "peermem",
    .question = "Can the RDMA driver ask NVIDIA's driver for GPU memory?",
    .looks_at =
        "/sys/module/nvidia_peermem, /sys/kernel/mm/memory_peers, /proc/modules, /proc/kallsyms, the "
        "kernel log, /lib/modules/<release>/modules.dep, /etc/modules-load.d, /etc/modules",
    .layer = Layer::driver,
    .causes = causes,
    .run = run};

}  // namespace gdrbench::doctor
