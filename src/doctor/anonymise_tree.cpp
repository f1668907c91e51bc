#include <arpa/inet.h>

#include <algorithm>
#include <sstream>

#include "doctor/anonymise.hpp"
#include "doctor/anonymise_texts.hpp"
#include "doctor/subnets.hpp"

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
    "GUIDs,\n"
    "UUIDs and names of cgroups. Left out: serial numbers, gateways, names of processes, comments, most of "
    "the\n"
    "kernel's command line. Names of devices, interfaces, models, modules and versions are as they were, "
    "also\n"
    "where a host or user has such a name. Look through it before you pass it on.\n";

bool ends_with_any(const std::string& path, std::initializer_list<std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return path.ends_with(end); });
}

bool is_below(const std::string& path, std::string_view folder) {
  return path.starts_with(folder);
}

// Of the kernel's command line; the rest may name disks, servers, users and secrets.
std::string parameters_that_count(Anonymiser& anonymiser, const std::string& line) {
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
  std::istringstream lines(without_infos(xml));
  std::string kept;
  for (std::string line; std::getline(lines, line);)
    kept += (line.find("<info ") != std::string::npos && line.find("\"Size\"") == std::string::npos
                 ? anonymiser.addresses(line)
                 : anonymiser.kernel_text(line)) +
            "\n";
  return kept;
}

std::string anonymous(Anonymiser& anonymiser, const std::string& path, const std::string& content) {
  if (path == "proc/cmdline") return parameters_that_count(anonymiser, content);
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
  for (ProbeAnswer& probe : answers.probes) {
    probe.device = anonymiser.kernel_text(probe.device);
    probe.text = anonymiser.text(without_serial_numbers(probe.text));
  }
  answers.counters_before = anonymous(anonymiser, answers.counters_before);
  answers.counters_after = anonymous(anonymiser, answers.counters_after);
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
      content = anonymous_path(anonymiser, path, content);
    } else if (path.ends_with("/config")) {
      content = without_serial_number(std::move(content));
    } else {
      content = anonymous(anonymiser, path, content);
    }
    result.add(anonymous_path(anonymiser, path, path), entry.kind, std::move(content));
  }
  result.add("README", Kind::file, std::string(readme));
  return result;
}

}  // namespace gdrbench::doctor
