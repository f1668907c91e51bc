#include "doctor/record/anonymise.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <sstream>

#include "doctor/facts/host.hpp"
#include "doctor/facts/rdma_ports.hpp"

namespace gdrbench::doctor {
namespace {

using Kind = RecordedTree::Kind;

// Parameters of /proc/cmdline that checks or readers may ask for: whole keys, with '_' for '-', which are the
// same to the kernel.
constexpr std::string_view kept_parameters =
    " amd_iommu amd_pstate arm_smmu.disable_bypass arm_smmu_v3.disable_bypass cpufreq.default_governor "
    "default_hugepagesz hugepages hugepagesz ib_core.netns_mode idle intel_idle.max_cstate intel_iommu "
    "intel_pstate iommu iommu.forcedac iommu.passthrough iommu.strict irqaffinity isolcpus kpti lockdown "
    "mitigations mlx4_core.log_mtts_per_seg mlx4_core.log_num_mtt mlx4_core.num_vfs mlx4_core.probe_vf "
    "mlx5_core.prof_sel modprobe.blacklist module.sig_enforce module_blacklist nohz nohz_full nosmt "
    "nouveau.modeset numa numa_balancing nvidia.NVreg_EnableGpuFirmware "
    "nvidia.NVreg_EnablePCIERelaxedOrderingMode nvidia.NVreg_EnableResizableBar "
    "nvidia.NVreg_EnableStreamMemOPs nvidia.NVreg_OpenRmEnableUnsupportedGpus nvidia.NVreg_RegistryDwords "
    "nvidia_drm.modeset pci pcie_acs_override pcie_aspm pcie_aspm.policy pcie_ports processor.max_cstate "
    "quiet rcu_nocbs rd.driver.blacklist ro rw swiotlb transparent_hugepage "
    "vfio_iommu_type1.allow_unsafe_interrupts vfio_pci.disable_idle_d3 vfio_pci.ids ";

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

std::string line_without_serial_number(std::string line) {
  const std::string low = lower_case(line);
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

bool is_kept_parameter(std::string_view key) {
  std::string known(key);
  std::replace(known.begin(), known.end(), '-', '_');
  return is_in_list(kept_parameters, known);
}

// Without "user@host", as of who built a kernel or module.
std::string without_builders(std::string text) {
  for (std::size_t at = 0; (at = text.find('@', at)) != std::string::npos;) {
    const std::size_t begin = text.find_last_of(" (<\n", at) + 1;
    const std::size_t end = std::min(text.find_first_of(" )>\n", at), text.size());
    text.erase(begin, end - begin);
    at = begin;
  }
  return text;
}

// Of a kernel log: without serial numbers, names of processes, command lines, and "user@host".
std::string without_private_words(const std::string& log) {
  return without_builders(by_line(log, [](std::string line) -> std::optional<std::string> {
    cut_after(line, "ommand line", {});
    cut_after(line, "name=", {","});
    cut_after(line, "Comm: ", {" Not tainted", " Tainted"});
    return line_without_serial_number(std::move(line));
  }));
}

// "Serial number: 123" → "Serial", line by line.
std::string without_serial_numbers(const std::string& text) {
  return by_line(text, [](std::string line) -> std::optional<std::string> {
    return line_without_serial_number(std::move(line));
  });
}

// Of files of modprobe and of lists of modules: without comments, and without commands that they run.
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

// Of /proc/kallsyms and /proc/modules: kernel addresses as zeros, as users see them.
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

// Of hwloc's XML: without names of processes and hosts, serial numbers, and all of DMI but vendor and
// product.
std::string hwloc_without_private_infos(const std::string& xml) {
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

// Without lines that begin with this.
std::string without_lines(const std::string& text, std::string_view head) {
  return by_line(
      text, [&](std::string line) { return line.starts_with(head) ? std::nullopt : std::optional(line); });
}

constexpr std::string_view recording_readme =
    R"(This folder was made by `gdrbench doctor --record`. It holds what the doctor looks at on a machine, so that
`gdrbench doctor --snapshot` finds elsewhere what it found there:

sys, proc, etc   kernel files about CPUs, PCI functions, GPUs, RDMA and network devices, modules
dev, lib, usr    empty files: that a device node, module or provider is there
topology.xml     hwloc's view of the machine
answers.json     what CUDA and libibverbs returned, limits, probes, lines of the kernel log

Replaced by others of their kind: names of the host and of users, IP addresses and GIDs, MAC addresses, GUIDs,
UUIDs and names of cgroups. Left out: serial numbers, gateways, names of processes, comments, most of the
kernel command line. Names of devices, interfaces, models, modules and versions are unchanged, also
where a host or user has such a name. Look through it before you share it.
)";

bool ends_with_any(const std::string& path, std::initializer_list<std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return path.ends_with(end); });
}

bool is_below(const std::string& path, std::string_view folder) {
  return path.starts_with(folder);
}

// Of the kernel's command line; the rest may name disks, servers, users and secrets.
std::string kept_command_line(Anonymiser& anonymiser, const std::string& line) {
  std::istringstream words(line);
  std::string text;
  for (std::string word; words >> word;) {
    const std::size_t end = std::min(word.find('='), word.size());
    if (is_kept_parameter(word.substr(0, end)))
      text += (text.empty() ? "" : " ") + word.substr(0, end) + anonymiser.text(word.substr(end));
  }
  return text + "\n";
}

// Subnets stay different or the same, and link-local ones link-local; what lies in which is not kept.
std::string anonymous_routes(Anonymiser& anonymiser, const std::string& text) {
  std::vector<AttachedSubnet> attached = attached_subnets(text);
  for (auto& [netdev, subnet] : attached) {
    netdev = anonymiser.kernel_text(netdev);
    const std::string whole = to_string(subnet);
    const std::string stand_in = anonymiser.kernel_text(whole.substr(0, whole.find('/')));
    in_addr address{};
    inet_pton(AF_INET, stand_in.c_str(), &address);
    subnet.address = ntohl(address.s_addr);
  }
  return route_table(attached) + "\n";
}

// "0::/system.slice/run.scope", "4:cpu,cpuacct:/docker/…", "1:name=systemd:/".
std::string without_groups(Anonymiser& anonymiser, const std::string& text) {
  std::istringstream lines(text);
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = std::min(line.find(':'), line.size());
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool is_own = controllers.starts_with("name=") && controllers != "name=systemd";
    kept += line.substr(0, first) + ":" + (is_own ? "name=other" : controllers) + ":" +
            anonymiser.group_path(line.substr(second + 1)) + "\n";
  }
  return kept;
}

// A host or user name in a path would be there for all to see: those of the kernel are of devices, modules
// and drivers. A path and what it holds are replaced alike, since checks go from one to the other.
std::string anonymous_path(Anonymiser& anonymiser, const std::string& path, const std::string& text) {
  constexpr std::string_view groups = "sys/fs/cgroup/";
  if (is_below(path, groups))
    return text == path ? std::string(groups) + anonymiser.group_path(path.substr(groups.size()))
                        : anonymiser.group_path(text);
  const bool has_versions = is_below(path, "lib/") || is_below(path, "usr/") || is_below(path, "sys/module/");
  return has_versions ? anonymiser.text_with_versions(text) : anonymiser.kernel_text(text);
}

bool holds_address(const std::string& path) {
  return path.find("/gids/") != std::string::npos || ends_with_any(path, {"_guid", "/address"});
}

// Of an element of hwloc's XML only an info holds addresses; sizes have as many digits.
std::string anonymous_topology(Anonymiser& anonymiser, const std::string& xml) {
  std::istringstream lines(hwloc_without_private_infos(xml));
  std::string kept;
  for (std::string line; std::getline(lines, line);)
    kept += (line.find("<info ") != std::string::npos && line.find("\"Size\"") == std::string::npos
                 ? anonymiser.addresses(line)
                 : anonymiser.kernel_text(line)) +
            "\n";
  return kept;
}

std::string anonymous(Anonymiser& anonymiser, const std::string& path, const std::string& content) {
  if (path == "proc/cmdline") return kept_command_line(anonymiser, content);
  // proc/self is a link to the folder of the process.
  if (is_below(path, "proc/") && path.ends_with("/cgroup")) return without_groups(anonymiser, content);
  if (is_below(path, "proc/") && path.ends_with("/net/route")) return anonymous_routes(anonymiser, content);
  if (path == "proc/cpuinfo") return anonymiser.text_with_versions(without_lines(content, "Serial"));
  if (path == "proc/kallsyms") return without_kernel_addresses(content);
  if (path == "proc/modules") return anonymiser.text_with_versions(without_kernel_addresses(content));
  if (path == "proc/version" || path == "proc/driver/nvidia/version")
    return anonymiser.text_with_versions(without_builders(content));
  if (path.ends_with("/hostname")) return anonymiser.text(content);
  if (path == "topology.xml") return anonymous_topology(anonymiser, content);
  if (is_below(path, "proc/driver/nvidia/")) return anonymiser.kernel_text(without_serial_numbers(content));
  if (path == "etc/modules" || path.find("/modules-load.d/") != std::string::npos ||
      path.find("/modprobe.d/") != std::string::npos)
    return anonymiser.kernel_text(without_comments(content));
  if (is_below(path, "etc/libibverbs.d/")) return anonymiser.kernel_text(without_comments(content));
  if (holds_address(path)) return anonymiser.addresses(content);
  if (ends_with_any(path, {"version", "fw_ver", "/hca_type", "osrelease"}))
    return anonymiser.text_with_versions(content);
  return anonymiser.kernel_text(content);
}

std::map<std::string, std::uint64_t> anonymous(Anonymiser& anonymiser,
                                               const std::map<std::string, std::uint64_t>& counters) {
  std::map<std::string, std::uint64_t> result;
  for (const auto& [name, value] : counters) result[anonymiser.kernel_text(name)] = value;
  return result;
}

Answers anonymous(Anonymiser& anonymiser, Answers answers) {
  answers.cuda_unavailable = anonymiser.text(answers.cuda_unavailable);
  if (answers.kernel_log) answers.kernel_log = anonymiser.text(without_private_words(*answers.kernel_log));
  for (RdmaAnswer& device : answers.rdma) device.device = anonymiser.kernel_text(device.device);
  for (ProbeResult& probe : answers.probes) {
    probe.device = anonymiser.kernel_text(probe.device);
    probe.text = anonymiser.text(without_serial_numbers(probe.text));
  }
  answers.counters_before = anonymous(anonymiser, answers.counters_before);
  answers.counters_after = anonymous(anonymiser, answers.counters_after);
  return answers;
}

// The extended capability "device serial number" (3 of the PCIe specification) of a configuration space, of
// which NICs make their MAC addresses.
std::string config_without_serial_number(std::string config) {
  const auto word = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i)
      value |= std::uint32_t{static_cast<unsigned char>(config[at + i])} << 8 * i;
    return value;
  };
  constexpr std::uint32_t serial_number = 3;
  std::size_t at = 0x100;
  for (int steps = 0; steps < 96 && at >= 0x100 && at + 12 <= config.size(); ++steps) {
    const std::uint32_t head = word(at);
    if ((head & 0xffff) == serial_number)
      std::fill_n(config.begin() + static_cast<std::ptrdiff_t>(at) + 4, 8, '\0');
    at = head >> 20 & 0xffc;
  }
  return config;
}

}  // namespace

RecordedTree anonymise(const RecordedTree& tree, const PrivateNames& names) {
  Anonymiser anonymiser(names);
  RecordedTree result;
  for (const auto& [path, entry] : tree.entries()) {
    std::string content = entry.content;
    if (path == "answers.json") {
      const auto document = nlohmann::json::parse(content, nullptr, false);
      content = to_json(anonymous(anonymiser, answers_from_json(document)))
                    .dump(1, ' ', false, nlohmann::json::error_handler_t::replace) +
                "\n";
    } else if (entry.kind == Kind::link) {
      content = anonymous_path(anonymiser, path, content);
    } else if (path.ends_with("/config")) {
      content = config_without_serial_number(std::move(content));
    } else {
      content = anonymous(anonymiser, path, content);
    }
    result.add(anonymous_path(anonymiser, path, path), entry.kind, std::move(content));
  }
  result.add("README", Kind::file, std::string(recording_readme));
  return result;
}

}  // namespace gdrbench::doctor
