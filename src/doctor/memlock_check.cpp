#include <charconv>

#include "doctor/check_list.hpp"
#include "doctor/evidence.hpp"
#include "gdrbench/size.hpp"

namespace gdrbench::doctor {
namespace {

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "This process may lock enough memory."},
    {"too_low", Verdict::fail,
     "This process may lock less memory than the request: registering that much host memory fails with "
     "ENOMEM, and so may queues.",
     "where the process is started: ulimit -l unlimited; systemd: LimitMEMLOCK=infinity in the service's "
     "unit; Slurm: that line for slurmd, and PropagateResourceLimitsExcept=MEMLOCK in slurm.conf; container: "
     "docker run --ulimit memlock=-1; Kubernetes: the capability IPC_LOCK in the container's "
     "securityContext, or "
     "LimitMEMLOCK=infinity for containerd. /etc/security/limits.conf counts at the next login only and does "
     "not "
     "reach launchers and daemons that already run",
     "a process without the limit can take all memory from others"},
    {"low_but_lifted", Verdict::info,
     "The limit of locked memory is lower than the request; the process has CAP_IPC_LOCK, which lifts it. "
     "For other users, and in a user namespace, it holds.",
     ""},
    {"not_known", Verdict::unknown, "The limit of locked memory of the process is not known.",
     "run gdrbench doctor on the machine itself, started as the program that needs the memory is; or: ulimit "
     "-l"},
};

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

}  // namespace

const Check memlock_check = {.name = "memlock",
                             .question = "May this process lock as much memory as it is to register?",
                             .looks_at = "RLIMIT_MEMLOCK of the process, CapEff in /proc/self/status",
                             .layer = Layer::process,
                             .causes = causes,
                             .run = run};

}  // namespace gdrbench::doctor
