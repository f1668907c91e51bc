#include <fmt/format.h>

#include <algorithm>

#include "doctor/check.hpp"
#include "doctor/checks/checks.hpp"
#include "doctor/facts/host.hpp"

namespace gdrbench::doctor {
namespace {

namespace cpu {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "The CPUs run at full frequency."},
    {"governor", Verdict::warn,
     "The frequency governor slows idle CPUs down: latencies scatter, and the staged paths lose bandwidth.",
     "cpupower frequency-set -g performance (package linux-cpupower or linux-tools)",
     "uses more power; lasts until the next boot"},
};

constexpr Check check = {.name = "cpu",
                         .question = "Do the CPUs run at full frequency?",
                         .looks_at = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
                         .layer = Layer::performance,
                         .causes = causes,
                         .run = run};

bool is_cpu(const std::string& name) {
  return name.size() > 3 && name.starts_with("cpu") &&
         std::all_of(name.begin() + 3, name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<Finding> run(const Check& self, const Facts& facts) {
  const std::string folder = "sys/devices/system/cpu";
  int governed = 0, slow = 0;
  std::vector<Evidence> seen;
  for (const std::string& cpu : facts.root.list(folder)) {
    if (!is_cpu(cpu)) continue;
    const std::string path = fmt::format("{}/{}/cpufreq/scaling_governor", folder, cpu);
    const topology::FileText governor = facts.root.read(path, 64);
    if (!governor.present()) continue;
    ++governed;
    if (governor.text == "performance") continue;
    if (++slow == 1) seen.push_back({"/" + path, governor.text});
  }
  if (governed == 0) return {};
  if (slow == 0)
    return {find(self, "ok", "", {{"/" + folder + "/cpu*/cpufreq/scaling_governor", "performance"}})};
  seen.push_back({"processors", fmt::format("{} of {} not at performance", slow, governed)});
  return {find(self, "governor", "", std::move(seen))};
}

}  // namespace cpu

namespace numa {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "Every NUMA node with CPUs has memory."},
    {"balancing", Verdict::info,
     "Automatic NUMA balancing is on: the kernel unmaps pages now and then to see who uses them, which adds "
     "to latencies of the staged paths.",
     "for a measurement: sysctl kernel.numa_balancing=0"},
    {"no_memory", Verdict::warn,
     "A NUMA node has CPUs and no memory: what is bound to it gets all its memory from another node.",
     "populate the memory slots of that socket, all channels alike", "the machine has to be switched off"},
};

constexpr Check check = {
    .name = "numa",
    .question = "Does memory stay where it was placed?",
    .looks_at = "/sys/devices/system/node/node*/meminfo, /proc/sys/kernel/numa_balancing",
    .layer = Layer::performance,
    .causes = causes,
    .run = run};

// "Node 1 MemTotal:       131072000 kB" of zero kilobytes.
bool has_no_memory(const topology::Root& root, const topology::NumaNode& node, std::string& path) {
  path = fmt::format("sys/devices/system/node/node{}/meminfo", node.number);
  const std::string text = root.read(path, 4096).text;
  const std::size_t total = text.find("MemTotal:");
  if (total == std::string::npos) return false;
  const std::size_t digit = text.find_first_of("0123456789", total);
  return digit != std::string::npos && text[digit] == '0';
}

std::vector<Finding> run(const Check& self, const Facts& facts) {
  // With one node there is nothing to balance and nothing to take memory from.
  if (facts.machine.numa_nodes.size() < 2) return {};
  std::vector<Finding> findings;
  for (const topology::NumaNode& node : facts.machine.numa_nodes)
    if (std::string path; !node.cores.empty() && has_no_memory(facts.root, node, path))
      findings.push_back(
          find(self, "no_memory", fmt::format("NUMA node {}", node.number), {{"/" + path, "MemTotal 0 kB"}}));
  const std::string balancing = "proc/sys/kernel/numa_balancing";
  if (facts.root.number(balancing).value_or(0) > 0)
    findings.push_back(find(self, "balancing", "", {evidence(facts.root, balancing)}));
  if (findings.empty()) findings.push_back(find(self, "ok", "", {}));
  return findings;
}

}  // namespace numa

namespace huge_pages {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "Large host buffers can use huge pages."},
    {"never", Verdict::info,
     "Transparent huge pages are off, and none are reserved: large host buffers consist of small pages, for "
     "which NIC and CPU need many more translations.",
     "echo madvise >/sys/kernel/mm/transparent_hugepage/enabled"},
};

constexpr Check check = {.name = "huge_pages",
                         .question = "Can large host buffers use huge pages?",
                         .looks_at = "/sys/kernel/mm/transparent_hugepage/enabled, /proc/meminfo",
                         .layer = Layer::performance,
                         .causes = causes,
                         .run = run};

std::vector<Finding> run(const Check& self, const Facts& facts) {
  const std::string switch_file = "sys/kernel/mm/transparent_hugepage/enabled";
  const topology::FileText transparent = facts.root.read(switch_file, 256);
  if (!transparent.present()) return {};
  const std::string meminfo = facts.root.read("proc/meminfo").text;
  const std::string reserved = line_with(meminfo, "HugePages_Total:");
  const std::size_t digit = reserved.find_first_of("0123456789");
  const bool has_reserved = digit != std::string::npos && reserved[digit] != '0';
  const bool is_never = transparent.text.find("[never]") != std::string::npos && !has_reserved;
  return {find(self, is_never ? "never" : "ok", "",
               {{"/" + switch_file, transparent.text}, {"/proc/meminfo", reserved}})};
}

}  // namespace huge_pages

}  // namespace

CheckList cpu_checks() {
  static constexpr const Check* list[] = {&cpu::check, &numa::check, &huge_pages::check};
  return list;
}

}  // namespace gdrbench::doctor
