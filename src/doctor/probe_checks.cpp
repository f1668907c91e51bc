#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "doctor/check_list.hpp"

/// What was tried, turned into findings: where a file and a try disagree, the try is right.
namespace gdrbench::doctor {
namespace {

Evidence seen(const ProbeAnswer& probe) {
  // The check that an error names has been made beside this one.
  const std::string error = probe.text.substr(0, probe.text.find("; confirm with: "));
  return {probe.what + (probe.device.empty() ? "" : " on " + probe.device),
          error.empty() ? probe.outcome : probe.outcome + ": " + error};
}

bool any(const std::vector<ProbeAnswer>& probes, const char* outcome) {
  return std::any_of(probes.begin(), probes.end(),
                     [&](const ProbeAnswer& probe) { return probe.outcome == outcome; });
}

// "write forward" of "transfer gdr write forward".
std::string_view last_two_words(std::string_view text) {
  const std::size_t last = text.rfind(' ');
  const std::size_t before = last == std::string_view::npos || last == 0 ? last : text.rfind(' ', last - 1);
  return before == std::string_view::npos ? text : text.substr(before + 1);
}

// What came out alike is told once: "transfer gdr write forward, write reverse".
std::vector<Evidence> all_seen(const std::vector<ProbeAnswer>& probes) {
  std::vector<std::pair<std::string, ProbeAnswer>> alike;
  for (const ProbeAnswer& probe : probes) {
    const auto same = std::find_if(alike.begin(), alike.end(), [&](const auto& other) {
      return seen(other.second).value == seen(probe).value && other.second.device == probe.device;
    });
    if (same == alike.end())
      alike.emplace_back(probe.what, probe);
    else
      same->first += fmt::format(", {}", last_two_words(probe.what));
  }
  std::vector<Evidence> evidence;
  for (auto& [what, probe] : alike) {
    probe.what = what;
    evidence.push_back(seen(probe));
  }
  return evidence;
}

constexpr Cause driver_causes[] = {
    {"ok", Verdict::ok, "CUDA and libibverbs answered."},
    {"crashed", Verdict::fail,
     "A driver library crashed the process that asked it, as every program that uses it will.",
     "dmesg | tail -50; install the user-space libraries of the very version of the kernel modules (compare "
     "nvidia-smi, /proc/driver/nvidia/version, and ofed_info or the rdma-core package)",
     "programs that run on the old libraries have to be restarted"},
    {"hangs", Verdict::fail, "A driver did not answer: GPU, NIC or their kernel modules hang.",
     "dmesg | grep -E 'Xid|mlx5|hung'; nvidia-smi; where these hang too, reset the device or reboot",
     "a reset or reboot ends everything that uses the device"},
    {"failed", Verdict::warn, "A driver refused an answer.",
     "nvidia-smi and ibv_devinfo -v ask the same; the evidence says what was refused"},
};

std::vector<Finding> ask_drivers(const Check& self, const Facts& facts) {
  std::vector<Finding> findings;
  for (const ProbeAnswer& probe : facts.answers.probes) {
    if (!probe.what.starts_with("ask ")) continue;
    const char* const cause = probe.outcome == "crashed"     ? "crashed"
                              : probe.outcome == "timed out" ? "hangs"
                                                             : "failed";
    const std::string subject = !probe.device.empty()      ? probe.device
                                : probe.what == "ask cuda" ? "CUDA"
                                                           : "libibverbs";
    findings.push_back(find(self, cause, subject, {seen(probe)}));
  }
  if (findings.empty() && facts.answers.verbs_asked) findings.push_back(find(self, "ok", "", {}));
  return findings;
}

constexpr Cause registration_causes[] = {
    {"ok", Verdict::ok, "Memory was registered with the RDMA device."},
    {"one_way", Verdict::info,
     "GPU memory can be registered, in one of its two ways (dma-buf, peer memory) only."},
    {"host_fails", Verdict::fail, "Not even host memory can be registered with the RDMA device.",
     "ulimit -l (must be unlimited, or above what is registered); gdrbench doctor --check "
     "memlock,rdma_cgroup; other programs may "
     "hold all memory keys of the NIC"},
    {"gpu_fails", Verdict::fail,
     "GPU memory can be registered with the RDMA device neither as dma-buf nor as peer memory.",
     "modprobe nvidia-peermem, or NVIDIA's open kernel modules with Linux 5.12 or later for dma-buf"},
    {"crashed", Verdict::fail, "Registering memory took the process down inside a driver.",
     "dmesg | tail -50; bring kernel modules and user-space libraries to one version",
     "programs that run on the old libraries have to be restarted"},
    {"hangs", Verdict::fail, "Registering memory does not come to an end.",
     "dmesg | grep -E 'Xid|mlx5|hung'; reload the RDMA driver, or reboot",
     "both end everything that uses the device"},
};

Finding registration_finding(const Check& self, const std::string& device, const std::string& gpu,
                             const std::vector<ProbeAnswer>& probes) {
  const std::string subject = gpu.empty() ? device + " and host memory" : device + " and GPU " + gpu;
  const auto passed =
      std::count_if(probes.begin(), probes.end(), [](const ProbeAnswer& p) { return p.outcome == "passed"; });
  const char* cause = gpu.empty() ? "host_fails" : "gpu_fails";
  if (any(probes, "crashed"))
    cause = "crashed";
  else if (any(probes, "timed out"))
    cause = "hangs";
  else if (passed == static_cast<std::ptrdiff_t>(probes.size()))
    cause = "ok";
  else if (passed > 0)
    cause = "one_way";
  return find(self, cause, subject, all_seen(probes));
}

std::vector<Finding> registrations(const Check& self, const Facts& facts) {
  std::map<std::pair<std::string, std::string>, std::vector<ProbeAnswer>> tried;
  for (const ProbeAnswer& probe : facts.answers.probes)
    if (probe.what.starts_with("register ")) tried[{probe.device, probe.gpu}].push_back(probe);
  std::vector<Finding> findings;
  findings.reserve(tried.size());
  for (const auto& [where, probes] : tried)
    findings.push_back(registration_finding(self, where.first, where.second, probes));
  return findings;
}

constexpr Cause transfer_causes[] = {
    {"ok", Verdict::ok, "4 KiB went each way over this path, by write and by read, and were verified."},
    {"not_run", Verdict::info, "This path was not tried, for the reason given."},
    {"partly", Verdict::warn,
     "This path works for some operations or directions only: often a root complex that forwards "
     "peer-to-peer "
     "writes and not reads.",
     "use the operation and direction that passed, or a GPU and NIC below one PCIe switch: gdrbench "
     "topology"},
    {"fails", Verdict::fail, "Transfers over this path fail.",
     "the error names the usual cause, where one is known; then gdrbench doctor at both ends, as root (ACS, "
     "kernel log); gdrbench compare HOST --memory host tells whether GPU memory makes the difference"},
    {"crashed", Verdict::fail, "A transfer took the process down inside a driver.",
     "dmesg | tail -50; bring kernel modules and user-space libraries to one version",
     "programs that run on the old libraries have to be restarted"},
    {"hangs", Verdict::fail,
     "A transfer does not come to an end: with GPU memory often ACS or the IOMMU between GPU and NIC.",
     "gdrbench doctor --check acs,iommu; dmesg | grep -E 'Xid|mlx5|DMAR|AMD-Vi'"},
};

Finding transfer_finding(const Check& self, const std::string& path, const std::vector<ProbeAnswer>& probes) {
  const auto count = [&](const char* outcome) {
    return static_cast<std::size_t>(std::count_if(
        probes.begin(), probes.end(), [&](const ProbeAnswer& p) { return p.outcome == outcome; }));
  };
  const char* cause = "fails";
  if (count("crashed") > 0)
    cause = "crashed";
  else if (count("timed out") > 0)
    cause = "hangs";
  else if (count("passed") == probes.size())
    cause = "ok";
  else if (count("not run") == probes.size())
    cause = "not_run";
  else if (count("passed") > 0)
    cause = "partly";
  return find(self, cause, path, all_seen(probes));
}

// One finding a path: "transfer gdr write forward" is of "gdr".
std::vector<Finding> transfers(const Check& self, const Facts& facts) {
  constexpr std::string_view prefix = "transfer ";
  std::vector<std::pair<std::string, std::vector<ProbeAnswer>>> tried;
  for (const ProbeAnswer& probe : facts.answers.probes) {
    if (!probe.what.starts_with(prefix)) continue;
    const std::string rest = probe.what.substr(prefix.size());
    const std::string path = rest.substr(0, rest.find(' '));
    const auto known =
        std::find_if(tried.begin(), tried.end(), [&](const auto& one) { return one.first == path; });
    if (known == tried.end())
      tried.push_back({path, {probe}});
    else
      known->second.push_back(probe);
  }
  std::vector<Finding> findings;
  findings.reserve(tried.size());
  for (const auto& [path, probes] : tried) findings.push_back(transfer_finding(self, path, probes));
  return findings;
}

}  // namespace

const Check driver_answers_check = {.name = "driver_answers",
                                    .question = "Do CUDA and libibverbs answer at all?",
                                    .looks_at = "what they said, each in a process of its own",
                                    .layer = Layer::driver,
                                    .causes = driver_causes,
                                    .run = ask_drivers};

const Check probe_registration_check = {
    .name = "probe_registration",
    .question = "Can memory of each kind be registered with each RDMA device?",
    .looks_at = "64 KiB of host memory and of each GPU's, registered in a process of their own",
    .layer = Layer::probe,
    .causes = registration_causes,
    .run = registrations};

const Check probe_transfer_check = {
    .name = "probe_transfer",
    .question = "Does data arrive over each path, each way?",
    .looks_at = "4 KiB written and read each way over tcp, rdma and gdr, verified, in a process of their own",
    .layer = Layer::probe,
    .causes = transfer_causes,
    .run = transfers};

}  // namespace gdrbench::doctor
