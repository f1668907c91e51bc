#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "doctor/check_list.hpp"
#include "doctor/evidence.hpp"
#include "doctor/host.hpp"
#include "topology/pci_config.hpp"

namespace gdrbench::doctor {
namespace {

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "The PCIe switches between GPUs and NICs let them talk to each other."},
    {"redirects", Verdict::warn,
     "Access Control Services of this bridge send traffic between GPU and NIC up to the CPU instead of "
     "across the PCIe switch: transfers of GPU memory are slow, fail with status 4 and vendor error 0x51, "
     "hang, or deliver zeros.",
     "setpci -s {} ECAP_ACS+6.w=0:2c (until the next boot); to keep it: boot with pci=disable_acs_redir={}, "
     "or "
     "turn ACS off in the BIOS and look here again, since that switch is not always obeyed",
     "devices below this switch are no longer isolated from each other: not on hosts that hand them to "
     "virtual machines"},
    {"unknown", Verdict::unknown,
     "Whether Access Control Services divert traffic between GPU and NIC cannot be seen: the kernel shows "
     "that part of configuration space to root alone.",
     "run the doctor with sudo, or look yourself: sudo lspci -vvv | grep -e '^[0-9a-f]' -e ACSCtl"},
};

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

}  // namespace

const Check acs_check = {.name = "acs",
                         .question = "Do the PCIe switches let GPU and NIC talk to each other?",
                         .looks_at =
                             "the ACS control register of every bridge between a GPU and an RDMA NIC "
                             "below a common switch (/sys/bus/pci/devices/*/config, by libpci)",
                         .layer = Layer::platform,
                         .causes = causes,
                         .run = run};

}  // namespace gdrbench::doctor
