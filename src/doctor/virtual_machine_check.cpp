#include <fmt/format.h>

#include "doctor/check_list.hpp"
#include "doctor/evidence.hpp"
#include "doctor/host.hpp"
#include "topology/pci_config.hpp"

namespace gdrbench::doctor {
namespace {

constexpr Cause causes[] = {
    {"guest", Verdict::info,
     "This is a virtual machine: bridges, their ACS and the real distances of GPU and NIC are the host's to "
     "tell. Its IOMMU has to stay on; with ATS on the NIC and ACS \"direct translated\" on the host's PCIe "
     "switches, traffic between GPU and NIC still takes the short way.",
     "for the host's part: sudo lspci -vvv there; ACSCtl of the switches should show DirectTrans+"},
    {"ats_off", Verdict::warn,
     "Address Translation Services of this NIC are off: in a virtual machine every transfer of GPU memory "
     "then goes through the host's IOMMU in the CPU, which is slow or fails with vendor error 0x51.",
     "on the host: mlxconfig -d <address of the NIC there> set ATS_ENABLED=true, reboot the host, and set "
     "ACS \"direct translated\" on its PCIe switches",
     "a NIC with ATS is trusted with the host's addresses"},
    {"ats_unknown", Verdict::unknown,
     "Whether Address Translation Services of this NIC are on cannot be seen in this virtual machine.",
     "run the doctor with sudo; where the machine type has no PCI Express, look on the host: sudo lspci -vvv "
     "| grep -e '^[0-9a-f]' -e ATSCtl"},
};

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

}  // namespace

const Check virtual_machine_check = {
    .name = "virtual_machine",
    .question = "Is this a virtual machine, and can GPU and NIC reach each other from it?",
    .looks_at =
        "/proc/cpuinfo, /sys/class/dmi/id, the ATS control register of RDMA NICs "
        "(/sys/bus/pci/devices/*/config, by libpci)",
    .layer = Layer::platform,
    .causes = causes,
    .run = run};

}  // namespace gdrbench::doctor
