#include <fmt/format.h>

#include "doctor/check_list.hpp"
#include "doctor/evidence.hpp"
#include "doctor/host.hpp"
#include "topology/pci_config.hpp"

namespace gdrbench::doctor {
namespace {

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "NICs may reorder their PCIe writes."},
    {"off", Verdict::warn,
     "PCIe relaxed ordering is off for this NIC: on many machines that costs more than half of the bandwidth "
     "(others report 15 instead of 47 GB/s).",
     "setpci -s {} CAP_EXP+8.w=10:10 (until the next boot); to keep it: the BIOS's \"Relaxed Ordering\", and "
     "for NVIDIA NICs mlxconfig -d {} set PCI_WR_ORDERING=1, which counts after a reboot",
     "programs that wait for data by looking at memory, not for a completion, can see it out of order"},
    {"old_processor", Verdict::info,
     "This is an Intel Haswell or Broadwell, where relaxed ordering itself is slow: the kernel keeps it off "
     "for devices below this root port."},
    {"unknown", Verdict::unknown,
     "Whether relaxed ordering is on for the NICs cannot be seen: the kernel shows that part of "
     "configuration "
     "space to root alone.",
     "run the doctor with sudo, or: sudo lspci -vv | grep -e '^[0-9a-f]' -e RlxdOrd"},
};

// Root ports that Linux marks (drivers/pci/quirks.c, quirk_relaxedordering_disable).
bool is_slow_with_relaxed_ordering(std::uint16_t vendor, std::uint16_t device) {
  constexpr std::uint16_t intel = 0x8086;
  constexpr std::uint16_t haswell = 0x2f00, broadwell = 0x6f00, family = 0xff00;
  constexpr int first_port = 0x01, last_port = 0x0e;
  const int number = device & 0xff;
  return vendor == intel && ((device & family) == haswell || (device & family) == broadwell) &&
         number >= first_port && number <= last_port;
}

std::vector<Finding> run(const Check& self, const Facts& facts) {
  // Hypervisors show the bit as off whatever it is.
  if (is_virtual_machine(facts.root)) return {};
  std::vector<Finding> findings;
  std::vector<Evidence> unread;
  for (const topology::Nic* nic : rdma_nics(facts.machine)) {
    const std::string& address = nic->pci.address;
    // Of a virtual function the bit is always zero; that of its physical function counts.
    if (facts.root.exists(fmt::format("sys/bus/pci/devices/{}/physfn", address))) continue;
    if (nic->pci.way.size() > 2) {
      const topology::PciConfig port = topology::read_pci_config(facts.root, nic->pci.way[1]);
      if (is_slow_with_relaxed_ordering(port.vendor, port.device)) {
        findings.push_back(find(
            self, "old_processor", address,
            {{"root port " + nic->pci.way[1], fmt::format("{:#06x}:{:#06x}", port.vendor, port.device)}}));
        continue;
      }
    }
    const topology::PciConfig config = topology::read_pci_config(facts.root, address);
    const std::string source = fmt::format("/sys/bus/pci/devices/{}/config", address);
    if (!config.device_control) {
      unread.push_back({source, config.has_capabilities ? "no PCI Express capability" : "cut short"});
      continue;
    }
    const bool is_on = (config.device_control->value & topology::relaxed_ordering_enabled) != 0;
    findings.push_back(
        find(self, is_on ? "ok" : "off", address,
             {{source, fmt::format("Device Control at {:#x}: {:#06x}", config.device_control->offset,
                                   config.device_control->value)}}));
  }
  if (!unread.empty()) findings.push_back(find(self, "unknown", "", std::move(unread)));
  return findings;
}

}  // namespace

const Check relaxed_ordering_check = {
    .name = "relaxed_ordering",
    .question = "May the NICs reorder their PCIe writes?",
    .looks_at =
        "the Device Control register of each RDMA NIC and the kind of its root port "
        "(/sys/bus/pci/devices/*/config, by libpci)",
    .layer = Layer::performance,
    .causes = causes,
    .run = run};

}  // namespace gdrbench::doctor
