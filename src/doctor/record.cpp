#include "doctor/record.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <sstream>

#include "doctor/isolated.hpp"
#include "doctor/record_list.hpp"
#include "doctor/subnets.hpp"
#include "topology/hwloc_view.hpp"

namespace gdrbench::doctor {
namespace {

namespace fs = std::filesystem;
using Kind = RecordedTree::Kind;
using topology::FileState;
using topology::Root;

constexpr std::size_t most_entries = 200'000;
constexpr int most_links = 40;
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

std::string join(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

bool names_a_word(std::string_view text) {
  const auto words = record_words();
  return std::any_of(words.begin(), words.end(),
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
      for (const Recorded& one : record_list_of_pci()) take(join(folder, std::string(one.path)), one.take);
    }
  }

  void take_modules() {
    for (const std::string& module : root_.list("sys/module"))
      if (names_a_word(module))
        for (const Recorded& one : record_list_of_modules())
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
        take(join(folder, "rdma.max"), Take::text);
        take(join(folder, "rdma.current"), Take::text);
        if (depth < groups.size()) folder = join(folder, groups[depth]);
      }
    }
  }

  // Which modules this kernel could load.
  void take_module_files() {
    const std::string release = root_.read("proc/sys/kernel/osrelease").text;
    if (release.empty() || release.find('/') != std::string::npos || release == "..") return;
    const std::string top = "lib/modules/" + release;
    for (const char* list : {"modules.dep", "modules.builtin", "modules.alias.soft", "modules.softdep"})
      take(join(top, list), Take::lines);
    std::error_code fault;
    std::size_t looked_at = 0;
    const fs::path folder = root_.folder() / top;
    for (fs::recursive_directory_iterator entry(folder, fault), end;
         !fault && entry != end && looked_at < most_entries; entry.increment(fault), ++looked_at)
      if (const std::string name = entry->path().filename();
          name.find(".ko") != std::string::npos && names_a_word(name))
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
      if (const std::string path = join(folder, part); parts.empty() || root_.exists(path))
        expand(path, parts, use);
      return;
    }
    for (const std::string& name : root_.list(folder))
      if (fnmatch(part.c_str(), name.c_str(), 0) == 0) expand(join(folder, name), parts, use);
  }

  // Where a path leads, with every link on the way recorded; the last part is left as it is. Empty where it
  // leads nowhere.
  std::string follow(const std::string& path) {
    const fs::path parts(path);
    const std::string folder = parts.parent_path();
    if (folder.empty()) return path;
    const auto [known, is_new] = folders_.try_emplace(folder);
    if (is_new) known->second = follow_folder(folder);
    return known->second.empty() ? "" : join(known->second, parts.filename());
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
      const std::string next = join(real, part);
      std::error_code fault;
      if (!fs::is_symlink(root_.folder() / next, fault)) {
        real = next;
        continue;
      }
      if (++links > most_links || !add_link(next)) return "";
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
    if (tree_.entries().size() < most_entries) tree_.add(path, kind, std::move(content));
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
        for (const std::string& name : root_.list(real)) take_one(join(real, name), how, depth - 1);
    } else if (how != Take::link && fs::exists(status)) {
      take_file(real, how);
    }
  }

  void take_link(const std::string& real, Take how, int depth) {
    std::error_code fault;
    const bool leads_to_folder = fs::is_directory(root_.folder() / real, fault);
    // Files beside the one that is meant, such as `subsystem`, lead to all of sysfs.
    if (how != Take::link && leads_to_folder && how != Take::name) return;
    if (!add_link(real) || depth < -most_links) return;  // a chain of links may be a ring
    const std::string target = root_.resolve(real);
    if (target.empty()) return;
    if (leads_to_folder) {
      if (!tree_.entries().contains(target)) add(target, Kind::folder, "");
      follow(join(real, "x"));
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
      if (names_a_word(line)) kept += (kept.empty() ? "" : "\n") + line;
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
std::string export_safely(const Root& root) {
  constexpr std::chrono::seconds patience{20};
  const Isolated run =
      run_isolated([&](const Reporter& report) { report.answer(export_xml(root)); }, patience);
  const bool is_there = run.end == End::finished && !run.answers.empty() && run.answers.front().is_string();
  return is_there ? run.answers.front().get<std::string>() : "";
}

}  // namespace

RecordedTree record(const Root& root, const Answers& answers) {
  Recorder recorder(root);
  for (const Recorded& one : record_list()) recorder.take(std::string(one.path), one.take);
  recorder.take_pci();
  recorder.take_modules();
  recorder.take_module_files();
  recorder.take_cgroups();
  RecordedTree tree = recorder.result();
  if (const std::string xml = export_safely(root); !xml.empty()) tree.add("topology.xml", Kind::file, xml);
  tree.add("answers.json", Kind::file,
           to_json(answers).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  return tree;
}

}  // namespace gdrbench::doctor
