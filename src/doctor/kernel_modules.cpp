#include "doctor/kernel_modules.hpp"

#include <algorithm>

namespace gdrbench::doctor {
namespace {

constexpr std::size_t most_list_bytes = 4 << 20;  // modules.dep of a distribution has about 1 MiB

// A line of /proc/modules begins with the name.
bool lists_loaded(std::string_view modules, std::string_view name) {
  for (std::size_t at = modules.find(name); at != std::string_view::npos; at = modules.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || modules[at - 1] == '\n') && end < modules.size() && modules[end] == ' ') return true;
  }
  return false;
}

// modules.dep and modules.builtin name files, "kernel/…/rdma_rxe.ko.xz: …". In file names '-' stands for
// '_' at times.
bool lists_file(std::string list, std::string_view name) {
  std::replace(list.begin(), list.end(), '-', '_');
  const std::string file = "/" + std::string(name) + ".ko";
  for (std::size_t at = list.find(file); at != std::string::npos; at = list.find(file, at + 1)) {
    // Before a colon: the file itself, not what another one depends on.
    const std::size_t line = list.rfind('\n', at) + 1;
    if (list.find_first_of(": ", line) > at) return true;
  }
  return false;
}

}  // namespace

std::string_view to_string(ModuleState state) {
  switch (state) {
    case ModuleState::loaded:
      return "loaded";
    case ModuleState::builtin:
      return "built in";
    case ModuleState::available:
      return "not loaded";
    case ModuleState::absent:
      return "not there";
    case ModuleState::unknown:
      break;
  }
  return "cannot be seen";
}

ModuleState module_state(const topology::Root& root, std::string_view name) {
  const std::string folder = "lib/modules/" + kernel_release(root);
  const topology::FileText builtin = root.read(folder + "/modules.builtin", most_list_bytes);
  if (builtin.present() && lists_file(builtin.text, name)) return ModuleState::builtin;
  if (root.exists("sys/module/" + std::string(name)) ||
      lists_loaded(root.read("proc/modules", most_list_bytes).text, name))
    return ModuleState::loaded;
  const topology::FileText files = root.read(folder + "/modules.dep", most_list_bytes);
  if (!files.present()) return ModuleState::unknown;
  return lists_file(files.text, name) ? ModuleState::available : ModuleState::absent;
}

std::string kernel_release(const topology::Root& root) {
  return root.read("proc/sys/kernel/osrelease", 256).text;
}

}  // namespace gdrbench::doctor
