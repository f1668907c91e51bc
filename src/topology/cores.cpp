#include "topology/cores.hpp"

#include <fmt/format.h>
#include <hwloc.h>
#include <hwloc/linux.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <vector>

#include "gdrbench/error.hpp"
#include "topology/hwloc_view.hpp"

namespace gdrbench::topology {

CoreBitmap core_bitmap(const std::string& list) {
  CoreBitmap set(hwloc_bitmap_alloc());
  if (list.empty() || hwloc_bitmap_list_sscanf(set.get(), list.c_str()) != 0 ||
      hwloc_bitmap_weight(set.get()) < 0)
    hwloc_bitmap_zero(set.get());
  return set;
}

std::string core_list(hwloc_const_bitmap_t set) {
  char* text = nullptr;
  if (set == nullptr || hwloc_bitmap_list_asprintf(&text, set) < 0) return "";
  std::string list = text;
  std::free(text);
  return list;
}

std::string common_cores(const std::string& one, const std::string& other) {
  const CoreBitmap set = core_bitmap(one);
  hwloc_bitmap_and(set.get(), set.get(), core_bitmap(other).get());
  return core_list(set.get());
}

int count_cores(const std::string& list) {
  return hwloc_bitmap_weight(core_bitmap(list).get());
}

std::string cores_next_to_both(const std::string& first, const std::string& second) {
  if (std::string both = common_cores(first, second); !both.empty()) return both;
  return first.empty() ? second : first;
}

namespace {

namespace fs = std::filesystem;

// hwloc's calls on threads want one; nothing has to be in it.
hwloc_topology_t any_topology() {
  static const HwlocTopology topology = [] {
    hwloc_topology_t made = nullptr;
    if (hwloc_topology_init(&made) != 0) return HwlocTopology();
    HwlocTopology owned(made);
    hwloc_topology_set_components(made, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
    return hwloc_topology_load(made) == 0 ? std::move(owned) : HwlocTopology();
  }();
  return topology.get();
}

std::optional<std::string> cores_of(pid_t thread) {
  const CoreBitmap set = core_bitmap("");
  if (any_topology() == nullptr || hwloc_linux_get_tid_cpubind(any_topology(), thread, set.get()) != 0)
    return std::nullopt;
  return core_list(set.get());
}

std::vector<pid_t> threads() {
  std::vector<pid_t> found;
  std::error_code fault;
  for (fs::directory_iterator entry("/proc/self/task", fault), end; !fault && entry != end;
       entry.increment(fault)) {
    const std::string name = entry->path().filename();
    pid_t thread = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), thread).ec == std::errc{})
      found.push_back(thread);
  }
  return found;
}

struct Process {
  std::mutex mutex;
  std::vector<const ThreadBinding*> bindings;
  std::string before, now;
};

Process& process() {
  static Process one;
  return one;
}

// The errno value of the calling thread's move; that another has ended meanwhile is no fault.
int move_threads(Process& all, const std::string& to) {
  const CoreBitmap target = core_bitmap(to);
  if (hwloc_linux_set_tid_cpubind(any_topology(), gettid(), target.get()) != 0) return errno;
  for (const pid_t thread : threads())
    if (cores_of(thread) == all.now) hwloc_linux_set_tid_cpubind(any_topology(), thread, target.get());
  all.now = cores_of(gettid()).value_or(to);  // the kernel leaves out what a container may not have
  return 0;
}

}  // namespace

std::string allowed_cores() {
  const std::lock_guard lock(process().mutex);
  return process().bindings.empty() ? cores_of(gettid()).value_or("") : process().before;
}

ThreadBinding::ThreadBinding(std::string cores) : cores_(std::move(cores)) {
  Process& all = process();
  const std::lock_guard lock(all.mutex);
  if (all.bindings.empty()) {
    const std::optional<std::string> before = cores_of(gettid());
    if (!before) throw SystemError(errno, "asking on which cores this process runs");
    all.before = all.now = *before;
  }
  if (all.now != cores_) {
    if (const int fault = move_threads(all, cores_); fault != 0)
      throw SystemError(fault, fmt::format("binding this process to cores {}", cores_));
  }
  all.bindings.push_back(this);
}

ThreadBinding::~ThreadBinding() {
  Process& all = process();
  const std::lock_guard lock(all.mutex);
  std::erase(all.bindings, this);
  if (!all.bindings.empty() || all.now == all.before) return;
  if (const int fault = move_threads(all, all.before); fault != 0)
    fmt::print(stderr, "letting this process run on cores {} again: {}\n", all.before, errno_name(fault));
}

void ThreadBinding::renew() {
  Process& all = process();
  const std::lock_guard lock(all.mutex);
  // Refused only where the machine has lost these cores since: then the others' are no worse.
  if (all.now != cores_) move_threads(all, cores_);
}

}  // namespace gdrbench::topology
