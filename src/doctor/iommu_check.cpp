#include <fmt/format.h>

#include <array>

#include "doctor/check_list.hpp"
#include "doctor/evidence.hpp"
#include "doctor/host.hpp"

namespace gdrbench::doctor {
namespace {

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "No IOMMU translates the addresses of GPUs and NICs."},
    {"translates", Verdict::warn,
     "The IOMMU translates the addresses of GPU or NIC, so their traffic takes the way through the CPU: "
     "transfers of GPU memory are slow, fail with status 4 and vendor error 0x51, or hang.",
     "add iommu=pt (iommu.passthrough=1 on Arm) to the kernel's command line (GRUB_CMDLINE_LINUX in "
     "/etc/default/grub; update-grub, or on RHEL grubby --update-kernel=ALL --args; reboot), or turn VT-d, "
     "AMD-Vi or SMMU off in the BIOS",
     "a faulty or hostile device can then reach all memory; devices handed to virtual machines stay isolated "
     "with iommu=pt"},
    {"unknown", Verdict::unknown,
     "Whether an IOMMU translates the addresses of GPUs and NICs cannot be seen.",
     "look outside the container: cat /proc/cmdline /sys/kernel/iommu_groups/*/type"},
};

enum class Mode { off, passthrough, translated, unknown };

// Whole words of the kernel's command line.
bool has_option(const std::string& command_line, std::string_view option) {
  const std::string words = " " + command_line + " ";
  return words.find(fmt::format(" {} ", option)) != std::string::npos;
}

// What the command line says where the groups do not.
Mode asked_for(const std::string& command_line) {
  for (const char* option : {"iommu=off", "intel_iommu=off", "amd_iommu=off"})
    if (has_option(command_line, option)) return Mode::off;
  for (const char* option : {"iommu=pt", "iommu.passthrough=1"})
    if (has_option(command_line, option)) return Mode::passthrough;
  return Mode::unknown;
}

Mode mode_of(const topology::Root& root, const std::string& address, Evidence& seen) {
  const std::string group_link = fmt::format("sys/bus/pci/devices/{}/iommu_group", address);
  const std::string group = root.link_name(group_link);
  const bool knows_function = root.exists("sys/bus/pci/devices/" + address);
  if (group.empty()) {
    seen = {"/" + group_link, "absent"};
    return knows_function ? Mode::off : Mode::unknown;
  }
  const std::string path = fmt::format("sys/kernel/iommu_groups/{}/type", group);
  const topology::FileText type = root.read(path, 64);
  seen = {"/" + path, fmt::format("{} ({})", type.present() ? type.text : to_string(type.state), address)};
  if (type.text == "identity") return Mode::passthrough;
  if (type.text == "DMA" || type.text == "DMA-FQ") return Mode::translated;
  seen = evidence(root, "proc/cmdline");
  return asked_for(seen.value);
}

std::vector<Finding> run(const Check& self, const Facts& facts) {
  // In a guest the host's IOMMU always translates: another check has the advice for that.
  if (is_virtual_machine(facts.root)) return {};
  const auto nics = rdma_nics(facts.machine);
  if (facts.machine.gpus.empty() || nics.empty()) return {};
  std::vector<std::string> addresses;
  for (const topology::Gpu& gpu : facts.machine.gpus) addresses.push_back(gpu.pci.address);
  for (const topology::Nic* nic : nics) addresses.push_back(nic->pci.address);
  std::array<std::vector<Evidence>, 4> by_mode;
  for (const std::string& address : addresses) {
    Evidence seen;
    const Mode mode = mode_of(facts.root, address, seen);
    by_mode[static_cast<std::size_t>(mode)].push_back(std::move(seen));
  }
  const auto of = [&](Mode mode) -> std::vector<Evidence>& {
    return by_mode[static_cast<std::size_t>(mode)];
  };
  if (std::vector<Evidence>& seen = of(Mode::translated); !seen.empty()) {
    seen.push_back(evidence(facts.root, "proc/cmdline"));
    return {find(self, "translates", "", std::move(seen))};
  }
  if (!of(Mode::unknown).empty()) return {find(self, "unknown", "", of(Mode::unknown))};
  std::vector<Evidence> seen = of(Mode::off);
  seen.insert(seen.end(), of(Mode::passthrough).begin(), of(Mode::passthrough).end());
  return {find(self, "ok", "", std::move(seen))};
}

}  // namespace

const Check iommu_check = {
    .name = "iommu",
    .question = "Does an IOMMU translate the addresses of GPUs and NICs?",
    .looks_at = "/sys/bus/pci/devices/*/iommu_group, /sys/kernel/iommu_groups/*/type, /proc/cmdline",
    .layer = Layer::platform,
    .causes = causes,
    .run = run};

}  // namespace gdrbench::doctor
