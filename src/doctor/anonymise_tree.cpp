#include <algorithm>
#include <array>
#include <sstream>

#include "doctor/anonymise.hpp"

namespace gdrbench::doctor {
namespace {

using Kind = RecordedTree::Kind;

constexpr std::string_view readme =
    "This folder was made by `gdrbench doctor --record`. It holds what the doctor looks at on a machine, so "
    "that\n"
    "`gdrbench doctor --snapshot` finds elsewhere what it found there:\n\n"
    "sys, proc, etc   files of the kernel on CPUs, PCI functions, GPUs, RDMA and network devices, modules\n"
    "dev, lib, usr    empty files: that a device node, module or provider is there\n"
    "topology.xml     hwloc's view of the machine\n"
    "answers.json     what CUDA and libibverbs said, limits, probes, lines of the kernel's log\n\n"
    "Replaced by others of their kind: names of the host and of users, IP addresses and GIDs, MAC addresses, "
    "GUIDs\n"
    "and UUIDs. Left out: serial numbers, most of the kernel's command line. Names of devices, interfaces, "
    "models\n"
    "and versions are as they were. Look through it before you pass it on.\n";

bool ends_with_any(const std::string& path, std::initializer_list<std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return path.ends_with(end); });
}

// Of the kernel's command line; the rest may name disks, servers, users and secrets.
std::string parameters_that_count(const std::string& line) {
  constexpr std::array kept = {"amd_iommu",
                               "iommu",
                               "intel_iommu",
                               "arm-smmu",
                               "arm_smmu",
                               "smmu",
                               "pci",
                               "nvidia",
                               "nouveau",
                               "mlx",
                               "ib_",
                               "rdma",
                               "vfio",
                               "hugepage",
                               "default_hugepagesz",
                               "transparent_hugepage",
                               "numa",
                               "isolcpus",
                               "nohz",
                               "mitigations",
                               "intel_idle",
                               "processor.max_cstate",
                               "cpufreq",
                               "intel_pstate",
                               "amd_pstate",
                               "module.sig",
                               "modprobe.blacklist",
                               "module_blacklist",
                               "lockdown",
                               "kpti",
                               "nosmt",
                               "realloc",
                               "ro",
                               "rw",
                               "quiet",
                               "swiotlb",
                               "dma"};
  std::istringstream words(line);
  std::string text;
  for (std::string word; words >> word;)
    if (std::any_of(kept.begin(), kept.end(), [&](std::string_view name) {
          // Whole for the short ones: "root=" and "rootflags=" are none of ours.
          return name.size() > 2 ? word.starts_with(name) : word == name;
        }))
      text += (text.empty() ? "" : " ") + word;
  return text + "\n";
}

// Without lines that begin with one of these.
std::string without_lines(const std::string& text, std::initializer_list<std::string_view> heads) {
  std::istringstream lines(text);
  std::string kept;
  for (std::string line; std::getline(lines, line);)
    if (std::none_of(heads.begin(), heads.end(),
                     [&](std::string_view head) { return line.starts_with(head); }))
      kept += line + "\n";
  return kept;
}

// hwloc's `<info name="DMIProductSerial" value="…"/>` and their like.
std::string without_infos(const std::string& xml) {
  constexpr std::array hidden = {"Serial",   "UUID",   "AssetTag",    "WWN",
                                 "HostName", "Cgroup", "CommandLine", "ProcessName"};
  std::istringstream lines(xml);
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    const bool is_info = line.find("<info ") != std::string::npos;
    if (!is_info || std::none_of(hidden.begin(), hidden.end(),
                                 [&](const char* name) { return line.find(name) != std::string::npos; }))
      kept += line + "\n";
  }
  return kept;
}

// "name=" of a process that an Xid names, and "user@host" of who built a kernel.
std::string without_words(std::string text) {
  for (const std::string_view head : {"name="})
    for (std::size_t at = 0; (at = text.find(head, at)) != std::string::npos; at += head.size()) {
      const std::size_t begin = at + head.size();
      text.erase(begin, std::min(text.find_first_of(" ,\n", begin), text.size()) - begin);
    }
  for (std::size_t at = 0; (at = text.find('@', at)) != std::string::npos;) {
    const std::size_t begin = text.find_last_of(" (<\n", at) + 1;
    const std::size_t end = std::min(text.find_first_of(" )>\n", at), text.size());
    text.erase(begin, end - begin);
    at = begin;
  }
  return text;
}

std::string anonymous(Anonymiser& anonymiser, const std::string& path, const std::string& content) {
  if (path == "proc/cmdline") return anonymiser.text(parameters_that_count(content));
  if (path == "proc/cpuinfo") return anonymiser.text_with_versions(without_lines(content, {"Serial"}));
  if (path == "proc/version") return anonymiser.text_with_versions(without_words(content));
  if (path == "topology.xml") return anonymiser.text(without_infos(content));
  if (ends_with_any(
          path, {"version", "fw_ver", "/srcversion", "os-release", "/hca_type", "proc/modules", "osrelease"}))
    return anonymiser.text_with_versions(content);
  return anonymiser.text(content);
}

Answers anonymous(Anonymiser& anonymiser, Answers answers) {
  const auto apply = [&](std::string& text) { text = anonymiser.text(text); };
  apply(answers.cuda_unavailable);
  if (answers.kernel_log) answers.kernel_log = anonymiser.text(without_words(*answers.kernel_log));
  for (RdmaAnswer& device : answers.rdma) apply(device.device);
  for (ProbeAnswer& probe : answers.probes)
    for (std::string* text : {&probe.device, &probe.text}) apply(*text);
  return answers;
}

// The extended capability "device serial number" (3 of the PCIe specification) of a configuration space, of
// which NICs make their MAC addresses.
std::string without_serial_number(std::string config) {
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
      content = anonymiser.text_with_versions(content);
    } else if (path.ends_with("/config")) {
      content = without_serial_number(std::move(content));
    } else {
      content = anonymous(anonymiser, path, content);
    }
    result.add(anonymiser.text_with_versions(path), entry.kind, std::move(content));
  }
  result.add("README", Kind::file, std::string(readme));
  return result;
}

}  // namespace gdrbench::doctor
