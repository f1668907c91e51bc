#include "doctor/record/record.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <sstream>

#include "doctor/facts/child_process.hpp"
#include "doctor/facts/rdma_ports.hpp"
#include "topology/hwloc_view.hpp"

namespace gdrbench::doctor {
namespace {

enum class Take {
  text,     // what the file holds
  name,     // that it is there, and no more
  link,     // where it points, and an empty folder there
  lines,    // only lines that hold one of recorded_words
  subnets,  // of a table of routes, those that netdevs are attached to
  tree      // all files below, three folders deep
};

// A path whose parts may hold `*`.
struct RecordedFile {
  std::string_view path;
  Take take;
};

// What is recorded of a machine, beside its PCI functions and modules.
constexpr RecordedFile machine_files[] = {
    // RDMA. Attribute by attribute: others are serial numbers and the administrator's description.
    {"sys/class/infiniband/*/board_id", Take::text},
    {"sys/class/infiniband/*/fw_ver", Take::text},
    {"sys/class/infiniband/*/hca_type", Take::text},
    {"sys/class/infiniband/*/hw_rev", Take::text},
    {"sys/class/infiniband/*/node_guid", Take::text},
    {"sys/class/infiniband/*/node_type", Take::text},
    {"sys/class/infiniband/*/parent", Take::text},
    {"sys/class/infiniband/*/sys_image_guid", Take::text},
    {"sys/class/infiniband/*/device", Take::link},
    {"sys/class/infiniband/*/device/net/*/mtu", Take::text},
    {"sys/class/infiniband/*/ports/*/*", Take::text},
    {"sys/class/infiniband/*/ports/*/gids/*", Take::text},
    {"sys/class/infiniband/*/ports/*/gid_attrs/types/*", Take::text},
    {"sys/class/infiniband/*/ports/*/gid_attrs/ndevs/*", Take::text},
    {"sys/class/infiniband/*/ports/*/counters/*", Take::text},
    {"sys/class/infiniband/*/ports/*/hw_counters/*", Take::text},
    {"sys/class/infiniband/*/hw_counters/*", Take::text},
    {"sys/class/infiniband/*/ports/*/pkeys/0", Take::text},
    {"sys/class/infiniband", Take::name},
    {"sys/class/infiniband_verbs", Take::name},
    {"sys/class/infiniband_verbs/abi_version", Take::text},
    {"sys/class/infiniband_verbs/*/ibdev", Take::text},
    {"sys/class/infiniband_verbs/*/abi_version", Take::text},
    {"sys/class/infiniband_verbs/*/dev", Take::text},
    {"sys/class/misc/rdma_cm/*", Take::text},
    // Networks, without aliases and addresses of switches
    {"sys/class/net/*", Take::link},
    {"sys/class/net/*/device", Take::link},
    {"sys/class/net/*/addr_assign_type", Take::text},
    {"sys/class/net/*/address", Take::text},
    {"sys/class/net/*/carrier", Take::text},
    {"sys/class/net/*/carrier_changes", Take::text},
    {"sys/class/net/*/dev_id", Take::text},
    {"sys/class/net/*/dev_port", Take::text},
    {"sys/class/net/*/duplex", Take::text},
    {"sys/class/net/*/flags", Take::text},
    {"sys/class/net/*/ifindex", Take::text},
    {"sys/class/net/*/iflink", Take::text},
    {"sys/class/net/*/mtu", Take::text},
    {"sys/class/net/*/operstate", Take::text},
    {"sys/class/net/*/speed", Take::text},
    {"sys/class/net/*/tx_queue_len", Take::text},
    {"sys/class/net/*/type", Take::text},
    {"sys/class/net/*/statistics/*", Take::text},
    // NVMe
    {"sys/class/nvme/*/model", Take::text},
    {"sys/class/nvme/*/device", Take::link},
    {"sys/class/block/*/device", Take::link},
    // PCI, IOMMU
    {"sys/kernel/iommu_groups", Take::name},
    {"sys/kernel/iommu_groups/*/type", Take::text},
    {"sys/kernel/iommu_groups/*/devices/*", Take::link},
    {"sys/class/iommu", Take::name},
    {"sys/class/iommu/*", Take::link},
    {"sys/firmware/acpi/tables/*", Take::name},
    {"sys/class/dmi/id/product_name", Take::text},
    {"sys/class/dmi/id/sys_vendor", Take::text},
    {"sys/hypervisor/type", Take::text},
    // CPUs and memory
    {"sys/devices/system/node/*", Take::text},
    {"sys/devices/system/node/node*/*", Take::text},
    {"sys/devices/system/node/node*/cpu*", Take::link},
    {"sys/devices/system/node/node*/hugepages/*/*", Take::text},
    {"sys/devices/system/cpu/*", Take::text},
    {"sys/devices/system/cpu/smt/*", Take::text},
    {"sys/devices/system/cpu/intel_pstate/*", Take::text},
    {"sys/devices/system/cpu/cpufreq/*", Take::text},
    {"sys/devices/system/cpu/cpu*/online", Take::text},
    {"sys/devices/system/cpu/cpu*/topology/*", Take::text},
    {"sys/devices/system/cpu/cpu*/cpufreq/*", Take::text},
    {"sys/kernel/mm/hugepages/*/*", Take::text},
    {"sys/kernel/mm/transparent_hugepage/*", Take::text},
    {"sys/kernel/mm/memory_peers", Take::tree},
    {"sys/kernel/security/lockdown", Take::text},
    {"sys/module/*", Take::name},
    {"proc/cmdline", Take::text},
    {"proc/cpuinfo", Take::text},
    {"proc/meminfo", Take::text},
    {"proc/version", Take::text},
    {"proc/modules", Take::text},
    {"proc/kallsyms", Take::lines},
    {"proc/driver/nvidia/*", Take::text},
    {"proc/driver/nvidia/gpus/*/information", Take::text},
    {"proc/sys/kernel/osrelease", Take::text},
    {"proc/sys/kernel/ostype", Take::text},
    {"proc/sys/kernel/version", Take::text},
    {"proc/sys/kernel/dmesg_restrict", Take::text},
    {"proc/sys/kernel/kptr_restrict", Take::text},
    {"proc/sys/kernel/numa_balancing", Take::text},
    {"proc/sys/kernel/yama/ptrace_scope", Take::text},
    {"proc/sys/vm/*hugepage*", Take::text},
    {"proc/sys/vm/max_map_count", Take::text},
    {"proc/sys/net/ipv4/conf/*/rp_filter", Take::text},
    {"proc/sys/net/ipv4/conf/*/arp_*", Take::text},
    {route_file, Take::subnets},
    {"proc/1/cgroup", Take::name},
    {"proc/self/limits", Take::text},
    {"proc/self/status", Take::lines},
    {"proc/self/cgroup", Take::text},
    {"proc/crypto", Take::lines},
    // Device nodes, configuration, providers
    {"dev/infiniband/*", Take::name},
    {"dev/nvidia*", Take::name},
    {"dev/nvidia-caps/*", Take::name},
    {"dev/gdrdrv", Take::name},
    {"dev/dxg", Take::name},
    {"dev/vfio/*", Take::name},
    {"dev/dma_heap/*", Take::name},
    {".dockerenv", Take::name},
    {"run/.containerenv", Take::name},
    {"run/systemd/container", Take::text},
    {"run/udev", Take::name},
    {"etc/modules", Take::lines},
    {"etc/modules-load.d/*", Take::lines},
    {"etc/modprobe.d/*", Take::lines},
    {"usr/lib/modules-load.d/*", Take::lines},
    {"usr/lib/modprobe.d/*", Take::lines},
    {"etc/libibverbs.d/*", Take::text},
    {"usr/lib/*/libibverbs/*", Take::name},
    {"usr/lib64/libibverbs/*", Take::name},
    {"usr/lib/libibverbs/*", Take::name},
};

// Below the folder of each kernel module whose name holds one of recorded_words.
constexpr RecordedFile module_files[] = {
    {"version", Take::text}, {"srcversion", Take::text},   {"initstate", Take::text}, {"refcnt", Take::text},
    {"taint", Take::text},   {"parameters/*", Take::text}, {"holders/*", Take::name},
};

// Below the folder of each PCI function that may lie between a GPU and a NIC.
constexpr RecordedFile pci_function_files[] = {
    {"class", Take::text},
    {"vendor", Take::text},
    {"device", Take::text},
    {"subsystem_vendor", Take::text},
    {"subsystem_device", Take::text},
    {"revision", Take::text},
    {"irq", Take::text},
    {"enable", Take::text},
    {"numa_node", Take::text},
    {"local_cpus", Take::text},
    {"local_cpulist", Take::text},
    {"current_link_speed", Take::text},
    {"current_link_width", Take::text},
    {"max_link_speed", Take::text},
    {"max_link_width", Take::text},
    {"resource", Take::text},
    {"config", Take::text},
    {"modalias", Take::text},
    {"label", Take::text},
    {"ari_enabled", Take::text},
    {"ats", Take::text},
    {"sriov_numvfs", Take::text},
    {"sriov_totalvfs", Take::text},
    {"d3cold_allowed", Take::text},
    {"power_state", Take::text},
    {"power/control", Take::text},
    {"power/runtime_status", Take::text},
    {"aer_dev_correctable", Take::text},
    {"aer_dev_fatal", Take::text},
    {"aer_dev_nonfatal", Take::text},
    {"driver", Take::link},
    {"driver_override", Take::text},
    {"iommu_group", Take::link},
    {"iommu", Take::link},
    {"physfn", Take::link},
    {"infiniband/*", Take::name},
    {"net/*", Take::name},
};

// Modules and symbols that checks may look for in long lists.
constexpr std::string_view recorded_words[] = {
    "CapEff", "nvidia",  "nv_peer_mem", "gdrdrv",      "mlx4",    "mlx5",         "ib_",
    "rdma",   "rxe",     "siw",         "iw_cm",       "bnxt",    "irdma",        "qedr",
    "efa",    "hfi1",    "erdma",       "mana",        "vfio",    "pci",          "crc32",
    "iommu",  "nouveau", "hugetlb",     "peer_memory", "dma_buf", "memory_peers",
};

namespace fs = std::filesystem;
using Kind = RecordedTree::Kind;
using topology::FileState;
using topology::Root;

constexpr std::size_t max_entries = 200'000;
constexpr int max_links = 40;
constexpr int tree_depth = 3;
constexpr std::size_t long_list_bytes = 16 << 20;

std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (end > 0) parts.emplace_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

std::string path_join(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

bool holds_recorded_word(std::string_view text) {
  return std::any_of(std::begin(recorded_words), std::end(recorded_words),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

class Recorder {
 public:
  explicit Recorder(const Root& root) : root_(root) {}

  void take(const std::string& pattern, Take how) {
    expand("", parts_of(pattern), [&](const std::string& path) { take_one(path, how, tree_depth); });
  }

  void take_pci() {
    for (const std::string& address : root_.list("sys/bus/pci/devices")) {
      const std::string folder = "sys/bus/pci/devices/" + address;
      const std::int64_t base_class = root_.number(folder + "/class").value_or(0) >> 16;
      // Mass storage, networks, displays, bridges, processors, accelerators: by the PCI Code and ID
      // Assignment specification.
      constexpr std::int64_t wanted[] = {0x01, 0x02, 0x03, 0x06, 0x0b, 0x12};
      if (std::find(std::begin(wanted), std::end(wanted), base_class) == std::end(wanted)) continue;
      for (const RecordedFile& one : pci_function_files)
        take(path_join(folder, std::string(one.path)), one.take);
    }
  }

  void take_modules() {
    for (const std::string& module : root_.list("sys/module"))
      if (holds_recorded_word(module))
        for (const RecordedFile& one : module_files)
          take("sys/module/" + module + "/" + std::string(one.path), one.take);
  }

  // The limits of the process's groups, and of those above them.
  void take_cgroups() {
    std::istringstream lines(root_.read("proc/self/cgroup").text);
    for (std::string line; std::getline(lines, line);) {
      // Names of groups may hold colons too: "0::/system.slice:docker:…".
      const std::size_t colon = line.find(':', std::min(line.find(':'), line.size() - 1) + 1);
      std::string folder = "sys/fs/cgroup";
      const std::vector<std::string> groups =
          parts_of(colon == std::string::npos ? "" : line.substr(colon + 1));
      for (std::size_t depth = 0; depth <= groups.size(); ++depth) {
        take(path_join(folder, "rdma.max"), Take::text);
        take(path_join(folder, "rdma.current"), Take::text);
        if (depth < groups.size()) folder = path_join(folder, groups[depth]);
      }
    }
  }

  // Which modules this kernel could load.
  void take_module_files() {
    const std::string release = root_.read("proc/sys/kernel/osrelease").text;
    if (release.empty() || release.find('/') != std::string::npos || release == "..") return;
    const std::string top = "lib/modules/" + release;
    for (const char* list : {"modules.dep", "modules.builtin", "modules.alias.soft", "modules.softdep"})
      take(path_join(top, list), Take::lines);
    std::error_code fault;
    std::size_t looked_at = 0;
    const fs::path folder = root_.folder() / top;
    for (fs::recursive_directory_iterator entry(folder, fault), end;
         !fault && entry != end && looked_at < max_entries; entry.increment(fault), ++looked_at)
      if (const std::string name = entry->path().filename();
          name.find(".ko") != std::string::npos && holds_recorded_word(name))
        take_one(top + "/" + entry->path().lexically_relative(folder).native(), Take::name, 0);
  }

  RecordedTree result() { return std::move(tree_); }

 private:
  void expand(const std::string& folder, std::vector<std::string> parts,
              const std::function<void(const std::string&)>& use) const {
    if (parts.empty()) return use(folder);
    const std::string part = parts.front();
    parts.erase(parts.begin());
    if (part.find('*') == std::string::npos) {
      if (const std::string path = path_join(folder, part); parts.empty() || root_.exists(path))
        expand(path, parts, use);
      return;
    }
    for (const std::string& name : root_.list(folder))
      if (fnmatch(part.c_str(), name.c_str(), 0) == 0) expand(path_join(folder, name), parts, use);
  }

  // Where a path leads, with every link on the way recorded; the last part is left as it is. Empty where it
  // leads nowhere.
  std::string follow(const std::string& path) {
    const fs::path parts(path);
    const std::string folder = parts.parent_path();
    if (folder.empty()) return path;
    const auto [known, is_new] = folders_.try_emplace(folder);
    if (is_new) known->second = follow_folder(folder);
    return known->second.empty() ? "" : path_join(known->second, parts.filename());
  }

  std::string follow_folder(const std::string& path) {
    const std::vector<std::string> given = parts_of(path);
    std::deque<std::string> left(given.begin(), given.end());
    std::string real;
    for (int links = 0; !left.empty();) {
      const std::string part = left.front();
      left.pop_front();
      if (part == ".") continue;
      if (part == "..") {
        if (real.empty()) return "";
        real = fs::path(real).parent_path();
        continue;
      }
      const std::string next = path_join(real, part);
      std::error_code fault;
      if (!fs::is_symlink(root_.folder() / next, fault)) {
        real = next;
        continue;
      }
      if (++links > max_links || !add_link(next)) return "";
      const std::vector<std::string> target =
          parts_of(fs::read_symlink(root_.folder() / next, fault).native());
      left.insert(left.begin(), target.begin(), target.end());
    }
    return real;
  }

  // Links of sysfs are relative; one that is not leads out of a recorded tree.
  bool add_link(const std::string& path) {
    std::error_code fault;
    const fs::path target = fs::read_symlink(root_.folder() / path, fault);
    if (fault || target.empty() || target.is_absolute()) return false;
    add(path, Kind::link, target);
    return true;
  }

  void add(const std::string& path, Kind kind, std::string content) {
    if (tree_.entries().size() < max_entries) tree_.add(path, kind, std::move(content));
  }

  void take_one(const std::string& path, Take how, int depth) {
    const std::string real = follow(path);
    if (real.empty()) return;
    std::error_code fault;
    const fs::file_status status = fs::symlink_status(root_.folder() / real, fault);
    if (fs::is_symlink(status)) {
      take_link(real, how, depth);
    } else if (how == Take::name) {
      if (!fs::exists(status)) return;
      if (!tree_.entries().contains(real))
        add(real, fs::is_directory(status) ? Kind::folder : Kind::file, "");
    } else if (fs::is_directory(status)) {
      if (how == Take::tree && depth > 0)
        for (const std::string& name : root_.list(real)) take_one(path_join(real, name), how, depth - 1);
    } else if (how != Take::link && fs::exists(status)) {
      take_file(real, how);
    }
  }

  void take_link(const std::string& real, Take how, int depth) {
    std::error_code fault;
    const bool leads_to_folder = fs::is_directory(root_.folder() / real, fault);
    // Files beside the one that is meant, such as `subsystem`, lead to all of sysfs.
    if (how != Take::link && leads_to_folder && how != Take::name) return;
    if (!add_link(real) || depth < -max_links) return;  // a chain of links may be a ring
    const std::string target = root_.resolve(real);
    if (target.empty()) return;
    if (leads_to_folder) {
      if (!tree_.entries().contains(target)) add(target, Kind::folder, "");
      follow(path_join(real, "x"));
    } else {
      take_one(target, how, depth - 1);
    }
  }

  void take_file(const std::string& real, Take how) {
    const bool is_long = how == Take::lines || how == Take::subnets;
    topology::FileText file = is_long ? root_.read(real, long_list_bytes) : root_.read(real);
    if (file.state == FileState::absent) return;
    if (!file.present()) return add(real, Kind::link, fs::path(real).filename());
    if (how == Take::lines) file.text = lines_with_words(file.text);
    if (how == Take::subnets) file.text = route_table(attached_subnets(file.text));
    // Reading has dropped one newline, also of a configuration space that ends with this byte.
    add(real, Kind::file, file.text + (file.text.size() % 64 == 0 && real.ends_with("/config") ? "" : "\n"));
  }

  static std::string lines_with_words(const std::string& text) {
    std::istringstream lines(text);
    std::string kept;
    for (std::string line; std::getline(lines, line);)
      if (holds_recorded_word(line)) kept += (kept.empty() ? "" : "\n") + line;
    return kept;
  }

  const Root& root_;
  RecordedTree tree_;
  std::map<std::string, std::string> folders_;  // where each leads
};

std::string export_xml(const Root& root) {
  const topology::HwlocTopology topology = topology::load_hwloc(root);
  char* text = nullptr;
  int length = 0;
  if (!topology || hwloc_topology_export_xmlbuffer(topology.get(), &text, &length, 0) != 0) return "";
  std::string xml(text);
  hwloc_free_xmlbuffer(topology.get(), text);
  return xml;
}

// In a process of its own: hwloc crashes on the export of what some damaged trees make it see.
std::string export_in_child(const Root& root) {
  constexpr std::chrono::seconds timeout{20};
  const ChildResult run =
      run_in_child([&](const ChildReporter& report) { report.answer(export_xml(root)); }, timeout);
  const bool is_there =
      run.end == ChildEnd::finished && !run.answers.empty() && run.answers.front().is_string();
  return is_there ? run.answers.front().get<std::string>() : "";
}

}  // namespace

RecordedTree record(const Root& root, const Answers& answers) {
  Recorder recorder(root);
  for (const RecordedFile& one : machine_files) recorder.take(std::string(one.path), one.take);
  recorder.take_pci();
  recorder.take_modules();
  recorder.take_module_files();
  recorder.take_cgroups();
  RecordedTree tree = recorder.result();
  if (const std::string xml = export_in_child(root); !xml.empty()) tree.add("topology.xml", Kind::file, xml);
  tree.add("answers.json", Kind::file,
           to_json(answers).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  return tree;
}

}  // namespace gdrbench::doctor
