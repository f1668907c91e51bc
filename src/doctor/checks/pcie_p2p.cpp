#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "doctor/check.hpp"
#include "doctor/checks/checks.hpp"
#include "doctor/facts/host.hpp"
#include "topology/pci_function.hpp"

namespace gdrbench::doctor {
namespace {

namespace virtual_machine {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr Cause causes[] = {
    {"guest", Verdict::info,
     "This is a virtual machine: PCIe bridges, their ACS and the real distance between GPU and NIC can be "
     "seen on the host only. The IOMMU has to stay on; with ATS on the NIC and ACS Direct Translated P2P on "
     "the host's PCIe switches, traffic between GPU and NIC still takes the direct path.",
     "for the host's part: sudo lspci -vvv there; ACSCtl of the switches should show DirectTrans+"},
    {"ats_off", Verdict::warn,
     "Address Translation Services (ATS) of this NIC are off: in a virtual machine every transfer of GPU "
     "memory then goes through the host's IOMMU, which is slow or fails with vendor error 0x51.",
     "on the host: mlxconfig -d <PCI address of the NIC there> set ATS_ENABLED=true, reboot the host, and "
     "enable ACS Direct Translated P2P on its PCIe switches",
     "a NIC with ATS is trusted with host addresses"},
    {"ats_unknown", Verdict::unknown,
     "Whether Address Translation Services (ATS) of this NIC are on cannot be seen in this virtual machine.",
     "run the doctor with sudo; if the machine type has no PCI Express, look on the host: sudo lspci -vvv | "
     "grep -e '^[0-9a-f]' -e ATSCtl"},
};

constexpr Check check = {.name = "virtual_machine",
                         .question = "Is this a virtual machine, and can GPU and NIC reach each other in it?",
                         .looks_at =
                             "/proc/cpuinfo, /sys/class/dmi/id, the ATS control register of RDMA NICs "
                             "(/sys/bus/pci/devices/*/config, by libpci)",
                         .layer = Layer::platform,
                         .causes = causes,
                         .run = run};

std::vector<Finding> run(const Check& self, const Facts& facts) {
  if (facts.machine.gpus.empty() || !is_virtual_machine(facts.root)) return {};
  std::vector<Finding> findings = {
      find(self, "guest", "",
           {evidence(facts.root, "sys/class/dmi/id/sys_vendor"),
            {"/proc/cpuinfo", line_with(facts.root.read("proc/cpuinfo").text, "hypervisor").empty()
                                  ? "no flag hypervisor"
                                  : "flag hypervisor"}})};
  for (const topology::Nic* nic : rdma_nics(facts.machine)) {
    const topology::PciConfig config = topology::read_pci_config(facts.root, nic->pci.address);
    const std::string source = fmt::format("/sys/bus/pci/devices/{}/config", nic->pci.address);
    if (!config.address_translation) {
      findings.push_back(
          find(self, "ats_unknown", nic->pci.address,
               {{source, config.has_extended_capabilities ? "no ATS capability" : "cut short"}}));
    } else if ((config.address_translation->value & topology::address_translation_enabled) == 0) {
      findings.push_back(
          find(self, "ats_off", nic->pci.address,
               {{source, fmt::format("ATS control at {:#x}: {:#06x}", config.address_translation->offset,
                                     config.address_translation->value)}}));
    }
  }
  return findings;
}

}  // namespace virtual_machine

namespace acs {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "The PCIe switches between GPUs and NICs allow peer-to-peer traffic."},
    {"redirects", Verdict::warn,
     "Access Control Services (ACS) of this bridge redirect traffic between GPU and NIC to the root complex "
     "instead of across the PCIe switch: transfers of GPU memory are slow, fail with status 4 and vendor "
     "error 0x51, hang, or deliver zeros.",
     "setpci -s {} ECAP_ACS+6.w=0:2c (until the next boot); to make it permanent: boot with "
     "pci=disable_acs_redir={}, or disable ACS in the BIOS and check again, since that option is not always "
     "honoured",
     "devices below this switch are no longer isolated from each other: not on hosts that pass them through "
     "to virtual machines"},
    {"unknown", Verdict::unknown,
     "Whether ACS redirects traffic between GPU and NIC cannot be seen: the kernel shows that part of PCI "
     "configuration space to root only.",
     "run the doctor with sudo, or look yourself: sudo lspci -vvv | grep -e '^[0-9a-f]' -e ACSCtl"},
};

constexpr Check check = {.name = "acs",
                         .question = "Do the PCIe switches allow peer-to-peer traffic between GPU and NIC?",
                         .looks_at =
                             "the ACS control register of every bridge between a GPU and an RDMA NIC below a "
                             "common switch (/sys/bus/pci/devices/*/config, by libpci)",
                         .layer = Layer::platform,
                         .causes = causes,
                         .run = run};

using Way = std::vector<std::string>;

// Bridges below the last one that two functions share; none where they share the host bridge alone, since
// their traffic meets the CPU anyway.
std::set<std::string> bridges_between(const Way& a, const Way& b) {
  const auto [here, there] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  constexpr std::ptrdiff_t host_bridge = 1;
  std::set<std::string> bridges;
  if (here - a.begin() <= host_bridge) return bridges;
  // The last of a way is the function itself.
  if (here != a.end()) bridges.insert(here, a.end() - 1);
  if (there != b.end()) bridges.insert(there, b.end() - 1);
  return bridges;
}

std::vector<Finding> run(const Check& self, const Facts& facts) {
  // A guest sees none of the bridges that matter.
  if (is_virtual_machine(facts.root)) return {};
  std::set<std::string> bridges;
  for (const topology::Gpu& gpu : facts.machine.gpus)
    for (const topology::Nic* nic : rdma_nics(facts.machine))
      bridges.merge(bridges_between(gpu.pci.way, nic->pci.way));
  std::vector<Finding> findings;
  std::vector<Evidence> unread, let_pass;
  for (const std::string& bridge : bridges) {
    const topology::PciConfig config = topology::read_pci_config(facts.root, bridge);
    const std::string source = fmt::format("/sys/bus/pci/devices/{}/config", bridge);
    if (!config.has_extended_capabilities) {
      unread.push_back({source, config.state == topology::FileState::present
                                    ? "cut short"
                                    : std::string(to_string(config.state))});
    } else if (!config.access_control) {
      let_pass.push_back({source, "no ACS capability"});
    } else {
      const Evidence control = {source,
                                fmt::format("ACS control at {:#x}: {:#06x}", config.access_control->offset,
                                            config.access_control->value)};
      if ((config.access_control->value & topology::peer_to_peer_redirected) != 0) {
        findings.push_back(find(self, "redirects", bridge, {control}));
      } else {
        let_pass.push_back(control);
      }
    }
  }
  if (!unread.empty()) findings.push_back(find(self, "unknown", "", std::move(unread)));
  if (findings.empty() && !let_pass.empty()) findings.push_back(find(self, "ok", "", std::move(let_pass)));
  return findings;
}

}  // namespace acs

namespace iommu {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "No IOMMU translates the DMA addresses of GPUs and NICs."},
    {"translates", Verdict::warn,
     "The IOMMU translates the DMA addresses of the GPU or the NIC, so their traffic goes through the root "
     "complex: transfers of GPU memory are slow, fail with status 4 and vendor error 0x51, or hang.",
     "add iommu=pt (iommu.passthrough=1 on Arm) to the kernel command line (GRUB_CMDLINE_LINUX in "
     "/etc/default/grub; update-grub, or on RHEL grubby --update-kernel=ALL --args; reboot), or disable "
     "VT-d, AMD-Vi or SMMU in the BIOS",
     "a faulty or malicious device can then reach all memory; devices passed through to virtual machines "
     "stay isolated with iommu=pt"},
    {"unknown", Verdict::unknown,
     "Whether an IOMMU translates the DMA addresses of GPUs and NICs cannot be seen.",
     "look outside the container: cat /proc/cmdline /sys/kernel/iommu_groups/*/type"},
};

constexpr Check check = {
    .name = "iommu",
    .question = "Does an IOMMU translate the DMA addresses of GPUs and NICs?",
    .looks_at = "/sys/bus/pci/devices/*/iommu_group, /sys/kernel/iommu_groups/*/type, /proc/cmdline",
    .layer = Layer::platform,
    .causes = causes,
    .run = run};

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

}  // namespace iommu

}  // namespace

CheckList pcie_p2p_checks() {
  static constexpr const Check* list[] = {&virtual_machine::check, &acs::check, &iommu::check};
  return list;
}

}  // namespace gdrbench::doctor
