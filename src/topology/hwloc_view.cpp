#include "topology/hwloc_view.hpp"

#include <cstdlib>

namespace gdrbench::topology {
namespace {

constexpr const char* root_variable = "HWLOC_FSROOT";
constexpr std::size_t max_xml_bytes = 64 << 20;  // of a machine with hundreds of devices, 1 MiB

// They would start a GPU's driver in this process, and ask this machine whatever the root is. x86 moves the
// thread to every core in turn; what it adds, sysfs tells too.
constexpr const char* left_out[] = {"cuda", "nvml", "opencl", "gl", "levelzero", "rsmi", "x86"};

HwlocTopology prepare() {
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) return nullptr;
  HwlocTopology topology(made);
  for (const char* component : left_out)
    hwloc_topology_set_components(made, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
  hwloc_topology_set_io_types_filter(made, HWLOC_TYPE_FILTER_KEEP_ALL);
  return topology;
}

// Opening a pipe waits for a writer, and hwloc opens whatever has the right name. sysfs and procfs have none,
// but a recorded tree may hold anything.
bool holds_a_pipe(const Root& root) {
  namespace fs = std::filesystem;
  for (const char* part : {"sys", "proc"}) {
    std::error_code fault;
    for (fs::recursive_directory_iterator entry(root.folder() / part, fault), end; !fault && entry != end;
         entry.increment(fault))
      if (entry->symlink_status(fault).type() == fs::file_type::fifo) return true;
  }
  return false;
}

}  // namespace

HwlocTopology load_hwloc(const Root& root) {
  const bool recorded = !root.is_this_machine();
  // Read here: hwloc would wait for a pipe of that name.
  if (const FileText xml = recorded ? root.read("topology.xml", max_xml_bytes) : FileText(); xml.present()) {
    HwlocTopology topology = prepare();
    const auto bytes = static_cast<int>(xml.text.size()) + 1;  // with the null character
    if (topology && hwloc_topology_set_xmlbuffer(topology.get(), xml.text.c_str(), bytes) == 0 &&
        hwloc_topology_load(topology.get()) == 0)
      return topology;
  }
  if (recorded && holds_a_pipe(root)) return nullptr;
  // It would complain on standard error, and show this machine.
  if (recorded && !root.exists("sys")) return nullptr;
  if (recorded) setenv(root_variable, root.folder().c_str(), 1);
  HwlocTopology topology = prepare();
  const bool loaded = topology && hwloc_topology_load(topology.get()) == 0;
  if (recorded) unsetenv(root_variable);
  if (!loaded) return nullptr;
  return topology;
}

std::string hwloc_xml(const Root& root) {
  const HwlocTopology topology = load_hwloc(root);
  char* text = nullptr;
  int length = 0;  // counts the null character at the end
  if (!topology || hwloc_topology_export_xmlbuffer(topology.get(), &text, &length, 0) != 0 || length < 1)
    return "";
  std::string xml(text, static_cast<std::size_t>(length) - 1);
  hwloc_free_xmlbuffer(topology.get(), text);
  return xml;
}

}  // namespace gdrbench::topology
