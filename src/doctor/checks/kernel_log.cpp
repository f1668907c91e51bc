#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <set>

#include "doctor/check.hpp"
#include "doctor/checks/checks.hpp"

namespace gdrbench::doctor {
namespace {

namespace kernel_log {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "The kernel log reports no errors of GPUs, NICs and the links between them."},
    {"unreadable", Verdict::unknown, "The kernel log cannot be read.",
     "run the doctor with sudo, or allow it: sysctl kernel.dmesg_restrict=0",
     "every user can then read the kernel log"},
    {"gpu_init", Verdict::warn, "NVIDIA's driver could not initialise a GPU.",
     "read the lines around it: dmesg | grep NVRM. Usual causes: a BAR without an address (\"Above 4G "
     "Decoding\" in the BIOS), a missing power cable, open kernel modules on a GPU before Turing"},
    {"xid", Verdict::warn, "NVIDIA's driver reported a GPU error (Xid).",
     "look the number up in NVIDIA's list of Xid errors; 79 (fallen off the bus): power, cooling, seating of "
     "the card; 48, 63, 64, 94, 95: memory errors; 74: NVLink; 119, 120: the GPU system processor (GSP); "
     "reset the GPU or reboot before measuring, unless the list calls the number harmless. dmesg -T shows "
     "when it was"},
    {"nic", Verdict::warn, "The NIC's driver reported a timeout or failing health.",
     "update the NIC's firmware and driver, and check its seating, cooling and the lines around it: dmesg | "
     "grep mlx5_core"},
    {"pcie_errors", Verdict::warn, "A PCIe link on the path of a GPU or NIC reported errors (AER).",
     "reseat card, riser or cable; check the link with lspci -vv. Corrected errors cost bandwidth, others "
     "lose transfers"},
    {"iommu_fault", Verdict::warn, "The IOMMU blocked an access of a GPU or NIC: that transfer failed.",
     "add iommu=pt (iommu.passthrough=1 on Arm) to the kernel command line and reboot",
     "a faulty or malicious device can then reach all memory"},
};

constexpr Check check = {.name = "kernel_log",
                         .question = "Did the kernel report errors of GPUs, NICs or their links?",
                         .looks_at = "the kernel log: Xid, mlx5_core, AER, DMAR, AMD-Vi and arm-smmu lines",
                         .layer = Layer::kernel,
                         .causes = causes,
                         .run = run};

// Errors of a program in NVIDIA's list of Xid errors, not of the GPU.
constexpr std::array errors_of_programs = {13, 31, 43, 45};

bool has(std::string_view line, std::string_view words) {
  return line.find(words) != std::string_view::npos;
}

// Addresses of GPUs, NICs and the bridges above them, as "0000:bb:00.0".
std::set<std::string> our_addresses(const topology::Machine& machine) {
  std::set<std::string> addresses;
  const auto add = [&](const topology::PciFunction& function) {
    addresses.insert(function.address);
    if (function.way.size() > 1) addresses.insert(function.way.begin() + 1, function.way.end());
  };
  for (const topology::Gpu& gpu : machine.gpus) add(gpu.pci);
  for (const topology::Nic& nic : machine.nics)
    if (!nic.rdma_devices.empty()) add(nic.pci);
  return addresses;
}

// By the address, or as Intel's IOMMU writes it, "[bb:00.0]".
bool is_ours(const std::set<std::string>& addresses, std::string_view line) {
  return std::any_of(addresses.begin(), addresses.end(), [&](const std::string& address) {
    const std::size_t domain_end = address.find(':') + 1;
    return has(line, address) || has(line, fmt::format("[{}]", address.substr(domain_end)));
  });
}

// "NVRM: Xid (PCI:0000:bb:00): 79, pid=…".
bool is_gpu_error(std::string_view line) {
  const std::size_t xid = line.find("NVRM: Xid");
  const std::size_t number = xid == std::string_view::npos ? xid : line.find("): ", xid);
  if (number == std::string_view::npos) return false;
  const int value = std::atoi(std::string(line.substr(number + 3, 8)).c_str());
  return std::find(errors_of_programs.begin(), errors_of_programs.end(), value) == errors_of_programs.end();
}

bool is_iommu_fault(std::string_view line) {
  return (has(line, "DMAR: [DMA") && has(line, "fault")) ||
         (has(line, "AMD-Vi") && has(line, "IO_PAGE_FAULT"));
}

// A translation fault; the line names a stream and no device.
bool is_smmu_fault(std::string_view line) {
  return has(line, "arm-smmu") && has(line, "event 0x10");
}

std::string_view cause_of(const std::set<std::string>& addresses, std::string_view line) {
  if (has(line, "RmInitAdapter failed")) return "gpu_init";
  if (is_gpu_error(line)) return "xid";
  if (has(line, "mlx5_core") && (has(line, "timeout") || has(line, "health compromised"))) return "nic";
  if (has(line, "AER: ") && has(line, "rror") && is_ours(addresses, line)) return "pcie_errors";
  if (is_smmu_fault(line) || (is_iommu_fault(line) && is_ours(addresses, line))) return "iommu_fault";
  return "";
}

std::vector<Finding> run(const Check& self, const Facts& facts) {
  if (facts.machine.gpus.empty() && facts.machine.nics.empty()) return {};
  if (!facts.answers.kernel_log) return {find(self, "unreadable", "", {{"kernel log", "not readable"}})};
  const std::set<std::string> addresses = our_addresses(facts.machine);
  struct Lines {
    std::string last;
    int count = 0;
  };
  std::map<std::string_view, Lines> by_cause;
  std::string_view rest = *facts.answers.kernel_log;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::string_view cause = cause_of(addresses, line);
    if (cause.empty()) continue;
    Lines& lines = by_cause[cause];
    lines.last = line;
    ++lines.count;
  }
  std::vector<Finding> findings;
  findings.reserve(by_cause.size());
  for (const auto& [cause, lines] : by_cause)
    findings.push_back(
        find(self, cause, "", {{fmt::format("kernel log, last of {} such lines", lines.count), lines.last}}));
  if (findings.empty()) findings.push_back(find(self, "ok", "", {}));
  return findings;
}

}  // namespace kernel_log

}  // namespace

CheckList kernel_log_checks() {
  static constexpr const Check* list[] = {&kernel_log::check};
  return list;
}

}  // namespace gdrbench::doctor
