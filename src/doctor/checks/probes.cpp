#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "doctor/check.hpp"
#include "doctor/checks/checks.hpp"

namespace gdrbench::doctor {
namespace {

bool any(const std::vector<ProbeResult>& probes, const char* outcome) {
  return std::any_of(probes.begin(), probes.end(),
                     [&](const ProbeResult& probe) { return probe.outcome == outcome; });
}

// "write forward" of "transfer gdr write forward".
std::string_view last_two_words(std::string_view text) {
  const std::size_t last = text.rfind(' ');
  const std::size_t before = last == std::string_view::npos || last == 0 ? last : text.rfind(' ', last - 1);
  return before == std::string_view::npos ? text : text.substr(before + 1);
}

// What came out alike is told once: "transfer gdr write forward, write reverse".
std::vector<Evidence> all_probe_evidence(const std::vector<ProbeResult>& probes) {
  std::vector<std::pair<std::string, ProbeResult>> alike;
  for (const ProbeResult& probe : probes) {
    const auto same = std::find_if(alike.begin(), alike.end(), [&](const auto& other) {
      return probe_evidence(other.second).value == probe_evidence(probe).value &&
             other.second.device == probe.device;
    });
    if (same == alike.end())
      alike.emplace_back(probe.what, probe);
    else
      same->first += fmt::format(", {}", last_two_words(probe.what));
  }
  std::vector<Evidence> evidence;
  for (auto& [what, probe] : alike) {
    probe.what = what;
    evidence.push_back(probe_evidence(probe));
  }
  return evidence;
}

namespace probe_registration {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "Memory was registered with the RDMA device."},
    {"one_way", Verdict::info,
     "GPU memory can be registered in one of the two ways (dma-buf, peer memory) only."},
    {"host_fails", Verdict::fail, "Not even host memory can be registered with the RDMA device.",
     "ulimit -l (must be unlimited, or above what is registered); gdrbench doctor --check "
     "memlock,rdma_cgroup; other programs may use all memory keys of the NIC"},
    {"gpu_fails", Verdict::fail,
     "GPU memory can be registered with the RDMA device neither as dma-buf nor as peer memory.",
     "modprobe nvidia-peermem, or NVIDIA's open kernel modules with Linux 5.12 or later for dma-buf"},
    {"crashed", Verdict::fail, "Registering memory crashed the process inside a driver.",
     "dmesg | tail -50; bring kernel modules and user-space libraries to one version",
     "programs that run on the old libraries have to be restarted"},
    {"hangs", Verdict::fail, "Registering memory hangs.",
     "dmesg | grep -E 'Xid|mlx5|hung'; reload the RDMA driver, or reboot",
     "both end everything that uses the device"},
};

constexpr Check check = {
    .name = "probe_registration",
    .question = "Can memory of each kind be registered with each RDMA device?",
    .looks_at = "64 KiB of host memory and of each GPU's, registered in a process of their own",
    .layer = Layer::probe,
    .causes = causes,
    .run = run};

Finding registration_finding(const Check& self, const std::string& device, const std::string& gpu,
                             const std::vector<ProbeResult>& probes) {
  const std::string subject = gpu.empty() ? device + " and host memory" : device + " and GPU " + gpu;
  const auto passed =
      std::count_if(probes.begin(), probes.end(), [](const ProbeResult& p) { return p.outcome == "passed"; });
  const char* cause = gpu.empty() ? "host_fails" : "gpu_fails";
  if (any(probes, "crashed"))
    cause = "crashed";
  else if (any(probes, "timed out"))
    cause = "hangs";
  else if (passed == static_cast<std::ptrdiff_t>(probes.size()))
    cause = "ok";
  else if (passed > 0)
    cause = "one_way";
  return find(self, cause, subject, all_probe_evidence(probes));
}

std::vector<Finding> run(const Check& self, const Facts& facts) {
  std::map<std::pair<std::string, std::string>, std::vector<ProbeResult>> tried;
  for (const ProbeResult& probe : facts.answers.probes)
    if (probe.what.starts_with("register ")) tried[{probe.device, probe.gpu}].push_back(probe);
  std::vector<Finding> findings;
  findings.reserve(tried.size());
  for (const auto& [where, probes] : tried)
    findings.push_back(registration_finding(self, where.first, where.second, probes));
  return findings;
}

}  // namespace probe_registration

namespace probe_transfer {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr Cause causes[] = {
    {"ok", Verdict::ok,
     "4 KiB were transferred each way over this path, by write and by read, and verified."},
    {"not_run", Verdict::info, "This path was not tried, for the reason given."},
    {"partly", Verdict::warn,
     "This path works for some operations or directions only: often a root complex that forwards "
     "peer-to-peer writes and not reads.",
     "use the operation and direction that passed, or a GPU and NIC below one PCIe switch: gdrbench "
     "topology"},
    {"fails", Verdict::fail, "Transfers over this path fail.",
     "the error names the usual cause, if one is known; then gdrbench doctor at both ends, as root (ACS, "
     "kernel log); gdrbench compare HOST --memory host tells whether GPU memory makes the difference"},
    {"crashed", Verdict::fail, "A transfer crashed the process inside a driver.",
     "dmesg | tail -50; bring kernel modules and user-space libraries to one version",
     "programs that run on the old libraries have to be restarted"},
    {"hangs", Verdict::fail,
     "A transfer hangs: with GPU memory often because of ACS or the IOMMU between GPU and NIC.",
     "gdrbench doctor --check acs,iommu; dmesg | grep -E 'Xid|mlx5|DMAR|AMD-Vi'"},
};

constexpr Check check = {
    .name = "probe_transfer",
    .question = "Does data arrive over each path, each way?",
    .looks_at = "4 KiB written and read each way over tcp, rdma and gdr, verified, in a process of their own",
    .layer = Layer::probe,
    .causes = causes,
    .run = run};

Finding transfer_finding(const Check& self, const std::string& path, const std::vector<ProbeResult>& probes) {
  const auto count = [&](const char* outcome) {
    return static_cast<std::size_t>(std::count_if(
        probes.begin(), probes.end(), [&](const ProbeResult& p) { return p.outcome == outcome; }));
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
  return find(self, cause, path, all_probe_evidence(probes));
}

// One finding a path: "transfer gdr write forward" is of "gdr".
std::vector<Finding> run(const Check& self, const Facts& facts) {
  constexpr std::string_view prefix = "transfer ";
  std::vector<std::pair<std::string, std::vector<ProbeResult>>> tried;
  for (const ProbeResult& probe : facts.answers.probes) {
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

}  // namespace probe_transfer

}  // namespace

CheckList probes_checks() {
  static constexpr const Check* list[] = {&probe_registration::check, &probe_transfer::check};
  return list;
}

}  // namespace gdrbench::doctor
