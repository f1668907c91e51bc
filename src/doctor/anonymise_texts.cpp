#include "doctor/anonymise_texts.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

namespace gdrbench::doctor {
namespace {

constexpr std::string_view common_words[] = {"aer",
                                             "amd",
                                             "auto",
                                             "bar",
                                             "bnxt",
                                             "bnxt_re",
                                             "bridge",
                                             "bus",
                                             "class",
                                             "cluster",
                                             "com",
                                             "compromised",
                                             "core",
                                             "corp",
                                             "cpu",
                                             "cuda",
                                             "default",
                                             "dev",
                                             "device",
                                             "disagrees",
                                             "dma",
                                             "dmabuf",
                                             "dmar",
                                             "driver",
                                             "efa",
                                             "error",
                                             "failed",
                                             "fault",
                                             "force",
                                             "fallen",
                                             "gdr",
                                             "gdrdrv",
                                             "gpu",
                                             "health",
                                             "home",
                                             "host",
                                             "hugepages",
                                             "hypervisor",
                                             "infiniband",
                                             "internal",
                                             "iommu",
                                             "irdma",
                                             "irq",
                                             "kernel",
                                             "lan",
                                             "linux",
                                             "link",
                                             "local",
                                             "localdomain",
                                             "localhost",
                                             "lost",
                                             "madvise",
                                             "memory",
                                             "mlx4",
                                             "mlx4_core",
                                             "mlx5",
                                             "mlx5_core",
                                             "mlx5_ib",
                                             "module",
                                             "net",
                                             "never",
                                             "nic",
                                             "node",
                                             "none",
                                             "nouveau",
                                             "numa",
                                             "nv_peer_mem",
                                             "nvidia",
                                             "nvidia-uvm",
                                             "nvidia_drm",
                                             "nvidia_peermem",
                                             "nvidia_uvm",
                                             "nvme",
                                             "nvrm",
                                             "off",
                                             "open",
                                             "org",
                                             "page",
                                             "pass",
                                             "passthrough",
                                             "pci",
                                             "pcie",
                                             "peer",
                                             "peermem",
                                             "performance",
                                             "pid",
                                             "port",
                                             "proc",
                                             "rdma",
                                             "realloc",
                                             "register",
                                             "responder",
                                             "rdma_rxe",
                                             "rminitadapter",
                                             "root",
                                             "rxe",
                                             "siw",
                                             "soft",
                                             "strict",
                                             "symbol",
                                             "sys",
                                             "system",
                                             "timeout",
                                             "transfer",
                                             "unknown",
                                             "user",
                                             "verbs",
                                             "version",
                                             "vfio",
                                             "virtual",
                                             "vm",
                                             "warning",
                                             "write",
                                             "xid"};

// Whole keys, with '_' for '-', which are the same to the kernel.
constexpr std::string_view kept_parameters[] = {"amd_iommu",
                                                "amd_pstate",
                                                "arm_smmu.disable_bypass",
                                                "arm_smmu_v3.disable_bypass",
                                                "cpufreq.default_governor",
                                                "default_hugepagesz",
                                                "hugepages",
                                                "hugepagesz",
                                                "ib_core.netns_mode",
                                                "idle",
                                                "intel_idle.max_cstate",
                                                "intel_iommu",
                                                "intel_pstate",
                                                "iommu",
                                                "iommu.forcedac",
                                                "iommu.passthrough",
                                                "iommu.strict",
                                                "irqaffinity",
                                                "isolcpus",
                                                "kpti",
                                                "lockdown",
                                                "mitigations",
                                                "mlx4_core.log_mtts_per_seg",
                                                "mlx4_core.log_num_mtt",
                                                "mlx4_core.num_vfs",
                                                "mlx4_core.probe_vf",
                                                "mlx5_core.prof_sel",
                                                "modprobe.blacklist",
                                                "module.sig_enforce",
                                                "module_blacklist",
                                                "nohz",
                                                "nohz_full",
                                                "nosmt",
                                                "nouveau.modeset",
                                                "numa",
                                                "numa_balancing",
                                                "nvidia.NVreg_EnableGpuFirmware",
                                                "nvidia.NVreg_EnablePCIERelaxedOrderingMode",
                                                "nvidia.NVreg_EnableResizableBar",
                                                "nvidia.NVreg_EnableStreamMemOPs",
                                                "nvidia.NVreg_OpenRmEnableUnsupportedGpus",
                                                "nvidia.NVreg_RegistryDwords",
                                                "nvidia_drm.modeset",
                                                "pci",
                                                "pcie_acs_override",
                                                "pcie_aspm",
                                                "pcie_aspm.policy",
                                                "pcie_ports",
                                                "processor.max_cstate",
                                                "quiet",
                                                "rcu_nocbs",
                                                "rd.driver.blacklist",
                                                "ro",
                                                "rw",
                                                "swiotlb",
                                                "transparent_hugepage",
                                                "vfio_iommu_type1.allow_unsafe_interrupts",
                                                "vfio_pci.disable_idle_d3",
                                                "vfio_pci.ids"};

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

// What becomes of each line; nothing: it is left out.
template <typename Change>
std::string by_line(std::string_view text, Change change) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const bool has_newline = end < text.size();
    if (const std::optional<std::string> line = change(std::string(text.substr(0, end))))
      result += *line + (has_newline ? "\n" : "");
    text.remove_prefix(end + (has_newline ? 1 : 0));
  }
  return result;
}

std::string without_serial_number(std::string line) {
  const std::string low = lower(line);
  for (std::size_t at = 0; (at = low.find("serial", at)) != std::string::npos;) {
    at += 6;
    // "serialised" tells of no number, "SerialNumber" and "serialno" do.
    if (low.compare(at, 2, "iz") == 0 || low.compare(at, 2, "is") == 0) continue;
    line.erase(at);
    break;
  }
  return line;
}

// A name may hold spaces; what follows it is behind the next of these.
void cut_after(std::string& line, std::string_view head, std::initializer_list<std::string_view> ends) {
  for (std::size_t at = 0; (at = line.find(head, at)) != std::string::npos; at += head.size()) {
    const std::size_t begin = at + head.size();
    std::size_t end = line.size();
    for (const std::string_view mark : ends) end = std::min(end, line.find(mark, begin));
    line.erase(begin, end - begin);
  }
}

}  // namespace

bool is_common_word(std::string_view word) {
  return std::find(std::begin(common_words), std::end(common_words), word) != std::end(common_words);
}

bool is_kept_parameter(std::string_view key) {
  std::string known(key);
  std::replace(known.begin(), known.end(), '-', '_');
  return std::find(std::begin(kept_parameters), std::end(kept_parameters), known) !=
         std::end(kept_parameters);
}

std::string without_private_words(const std::string& log) {
  return without_builders(by_line(log, [](std::string line) -> std::optional<std::string> {
    cut_after(line, "ommand line", {});
    cut_after(line, "name=", {","});
    cut_after(line, "Comm: ", {" Not tainted", " Tainted"});
    return without_serial_number(std::move(line));
  }));
}

std::string without_builders(std::string text) {
  for (std::size_t at = 0; (at = text.find('@', at)) != std::string::npos;) {
    const std::size_t begin = text.find_last_of(" (<\n", at) + 1;
    const std::size_t end = std::min(text.find_first_of(" )>\n", at), text.size());
    text.erase(begin, end - begin);
    at = begin;
  }
  return text;
}

std::string without_serial_numbers(const std::string& text) {
  return by_line(text, [](std::string line) -> std::optional<std::string> {
    return without_serial_number(std::move(line));
  });
}

std::string without_comments(const std::string& text) {
  return by_line(text, [](std::string line) -> std::optional<std::string> {
    line.erase(std::min(line.find_first_of("#;"), line.size()));
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string::npos) return std::nullopt;
    for (const std::string_view command : {"install", "remove"}) {
      const std::size_t end = begin + command.size();
      if (line.compare(begin, command.size(), command) != 0 || end >= line.size() ||
          std::isspace(static_cast<unsigned char>(line[end])) == 0)
        continue;
      const std::size_t module = std::min(line.find_first_not_of(" \t", end), line.size());
      line.erase(std::min(line.find_first_of(" \t", module), line.size()));
    }
    return line;
  });
}

std::string without_kernel_addresses(const std::string& text) {
  const auto is_hex = [](unsigned char c) { return std::isxdigit(c) != 0; };
  const auto zero = [&](std::string& line, std::size_t begin) {
    const auto first = line.begin() + static_cast<std::ptrdiff_t>(begin);
    std::fill(first, std::find_if_not(first, line.end(), is_hex), '0');
  };
  return by_line(text, [&](std::string line) -> std::optional<std::string> {
    // kallsyms begins with an address, of 16 digits or 8; of modules, 0x comes before it.
    if (const std::size_t end = line.find(' ');
        (end == 8 || end == 16) &&
        std::all_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(end), is_hex))
      zero(line, 0);
    for (std::size_t at = 0; (at = line.find(" 0x", at)) != std::string::npos;) zero(line, at += 3);
    return line;
  });
}

std::string without_infos(const std::string& xml) {
  constexpr std::array hidden = {"Serial",   "UUID",   "AssetTag",    "WWN",        "\"DMI",
                                 "HostName", "Cgroup", "CommandLine", "ProcessName"};
  return by_line(xml, [&](std::string line) -> std::optional<std::string> {
    const bool is_told = line.find("\"DMIProductName\"") != std::string::npos ||
                         line.find("\"DMISysVendor\"") != std::string::npos;
    if (line.find("<info ") == std::string::npos || is_told) return line;
    const bool is_hidden = std::any_of(
        hidden.begin(), hidden.end(), [&](const char* name) { return line.find(name) != std::string::npos; });
    return is_hidden ? std::nullopt : std::optional(line);
  });
}

std::string without_lines(const std::string& text, std::string_view head) {
  return by_line(
      text, [&](std::string line) { return line.starts_with(head) ? std::nullopt : std::optional(line); });
}

}  // namespace gdrbench::doctor
