#include <cstdio>
#include <optional>
#include <sstream>

#include "doctor/check_list.hpp"
#include "doctor/evidence.hpp"

namespace gdrbench::doctor {
namespace {

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "No cgroup limits RDMA objects."},
    {"limited", Verdict::info,
     "A cgroup limits how many RDMA objects (queue pairs, memory regions, completion queues) or handles the "
     "process may have; it is not used up.",
     ""},
    {"exhausted", Verdict::fail,
     "The RDMA objects or handles that the process's cgroup allows are used up: opening the device, "
     "registering memory and creating queues fail with EAGAIN.",
     "echo '{} hca_object=max hca_handle=max' >/sys/fs/cgroup<cgroup>/rdma.max; or end what holds them"},
};

// Of the cgroup hierarchy v2, "0::/system.slice/run.scope"; empty where there is none.
std::string own_cgroup(const topology::Root& root) {
  std::istringstream lines(root.read("proc/self/cgroup").text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("0::/") && line.find("..") == std::string::npos) return line.substr(3);
  return "";
}

// The number after "hca_object=" in the device's line; absent for "max".
std::optional<std::uint64_t> value_of(const std::string& line, const std::string& what) {
  const std::size_t at = line.find(what + "=");
  std::uint64_t value = 0;
  if (at == std::string::npos || std::sscanf(line.c_str() + at + what.size() + 1, "%20lu", &value) != 1)
    return std::nullopt;
  return value;
}

std::string line_of(const std::string& text, const std::string& device) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(device + " ")) return line;
  return "";
}

// "/a/b" → "/a/b", "/a", "": the limits of every level count.
std::vector<std::string> levels(std::string group) {
  std::vector<std::string> groups;
  if (group == "/") group.clear();
  for (; !group.empty(); group.erase(group.rfind('/'))) groups.push_back(group);
  groups.emplace_back();
  return groups;
}

std::optional<Finding> limits_of(const Check& self, const topology::Root& root, const std::string& group,
                                 const std::string& device) {
  const std::string folder = "sys/fs/cgroup" + group;
  const std::string limits = line_of(root.read(folder + "/rdma.max").text, device);
  const std::string uses = line_of(root.read(folder + "/rdma.current").text, device);
  bool is_limited = false, is_exhausted = false;
  for (const char* what : {"hca_handle", "hca_object"}) {
    const auto limit = value_of(limits, what);
    is_limited |= limit.has_value();
    is_exhausted |= limit && value_of(uses, what).value_or(0) >= *limit;
  }
  if (!is_limited) return std::nullopt;
  return named(find(self, is_exhausted ? "exhausted" : "limited", device,
                    {{"/" + folder + "/rdma.max", limits}, {"/" + folder + "/rdma.current", uses}}),
               "<cgroup>", group);
}

std::vector<Finding> run(const Check& self, const Facts& facts) {
  const std::string group = own_cgroup(facts.root);
  const std::vector<std::string> devices = facts.root.list("sys/class/infiniband");
  if (group.empty() || devices.empty()) return {};
  std::vector<Finding> findings;
  for (const std::string& level : levels(group))
    for (const std::string& device : devices)
      if (auto finding = limits_of(self, facts.root, level, device)) findings.push_back(std::move(*finding));
  if (findings.empty()) return {find(self, "ok", "", {evidence(facts.root, "proc/self/cgroup")})};
  return findings;
}

}  // namespace

const Check rdma_cgroup_check = {.name = "rdma_cgroup",
                                 .question = "Does a cgroup limit the process's RDMA objects?",
                                 .looks_at = "/proc/self/cgroup, rdma.max and rdma.current of the cgroup",
                                 .layer = Layer::process,
                                 .causes = causes,
                                 .run = run};

}  // namespace gdrbench::doctor
