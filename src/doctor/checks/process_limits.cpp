#include <charconv>
#include <cstdio>
#include <optional>
#include <sstream>

#include "doctor/check.hpp"
#include "doctor/checks/checks.hpp"
#include "gdrbench/size.hpp"

namespace gdrbench::doctor {
namespace {

namespace memlock {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "This process may lock enough memory."},
    {"too_low", Verdict::fail,
     "This process may lock less memory than the request: registering that much host memory fails with "
     "ENOMEM, and creating queues may fail too.",
     "where the process is started: ulimit -l unlimited; systemd: LimitMEMLOCK=infinity in the service's "
     "unit; Slurm: that line for slurmd, and PropagateResourceLimitsExcept=MEMLOCK in slurm.conf; container: "
     "docker run --ulimit memlock=-1; Kubernetes: the capability IPC_LOCK in the container's "
     "securityContext, or LimitMEMLOCK=infinity for containerd. /etc/security/limits.conf takes effect at "
     "the next login only and does not reach launchers and daemons that already run",
     "a process without the limit can take all memory from others"},
    {"low_but_lifted", Verdict::info,
     "The limit of locked memory is lower than the request; the process has CAP_IPC_LOCK, which lifts it. "
     "For other users, and in a user namespace, it still applies.",
     ""},
    {"not_known", Verdict::unknown, "The process's limit of locked memory is unknown.",
     "run gdrbench doctor on the machine itself, started in the same way as the program that needs the "
     "memory; or: ulimit -l"},
};

constexpr Check check = {.name = "memlock",
                         .question = "May this process lock as much memory as it is to register?",
                         .looks_at = "RLIMIT_MEMLOCK of the process, CapEff in /proc/self/status",
                         .layer = Layer::process,
                         .causes = causes,
                         .run = run};

constexpr const char* status_file = "proc/self/status";

// "CapEff:\t000001ffffffffff"
bool may_lock_any(const topology::Root& root) {
  constexpr unsigned cap_ipc_lock = 14;
  const std::string status = root.read(status_file).text;
  constexpr std::string_view label = "CapEff:\t";
  const std::size_t at = status.find(label);
  if (at == std::string::npos) return false;
  std::uint64_t capabilities = 0;
  const char* const first = status.data() + at + label.size();
  std::from_chars(first, status.data() + status.size(), capabilities, 16);
  return (capabilities >> cap_ipc_lock & 1) != 0;
}

std::vector<Finding> run(const Check& self, const Facts& facts) {
  if (!facts.root.exists("sys/class/infiniband")) return {};
  const auto limit = facts.answers.memlock_bytes;
  if (!limit) return {find(self, "not_known", "", {})};
  const bool is_unlimited = *limit == ~std::uint64_t{0};
  std::vector<Evidence> seen = {
      {"RLIMIT_MEMLOCK of this process", is_unlimited ? "unlimited" : format_size(*limit)},
      {"the request", format_size(facts.request_bytes)}};
  if (*limit >= facts.request_bytes) return {find(self, "ok", "", std::move(seen))};
  if (!may_lock_any(facts.root)) return {find(self, "too_low", "", std::move(seen))};
  seen.push_back({"/proc/self/status", "CapEff has CAP_IPC_LOCK"});
  return {find(self, "low_but_lifted", "", std::move(seen))};
}

}  // namespace memlock

namespace rdma_cgroup {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "No cgroup limits RDMA objects."},
    {"limited", Verdict::info,
     "A cgroup limits the number of RDMA objects (queue pairs, memory regions, completion queues) or handles "
     "of the process; the limit is not reached.",
     ""},
    {"exhausted", Verdict::fail,
     "The process's cgroup has reached its limit of RDMA objects or handles: opening the device, registering "
     "memory and creating queues fail with EAGAIN.",
     "echo '{} hca_object=max hca_handle=max' >/sys/fs/cgroup<cgroup>/rdma.max; or end what uses them"},
};

constexpr Check check = {.name = "rdma_cgroup",
                         .question = "Does a cgroup limit the process's RDMA objects?",
                         .looks_at = "/proc/self/cgroup, rdma.max and rdma.current of the cgroup",
                         .layer = Layer::process,
                         .causes = causes,
                         .run = run};

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

}  // namespace rdma_cgroup

}  // namespace

CheckList process_limits_checks() {
  static constexpr const Check* list[] = {&memlock::check, &rdma_cgroup::check};
  return list;
}

}  // namespace gdrbench::doctor
