#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "doctor/check_list.hpp"
#include "doctor/host.hpp"

namespace gdrbench::doctor {
namespace {

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "Every PCIe link of GPUs and NICs runs at its best."},
    {"narrower", Verdict::warn, "This PCIe link runs on fewer lanes than both of its ends have.",
     "reseat the card, riser or cable at {}; look at the slot's bifurcation in the BIOS, and at the kernel "
     "log for AER errors",
     "the machine has to be switched off"},
    {"slower", Verdict::warn, "This PCIe link runs at a lower speed than both of its ends can.",
     "sample again under load: gdrbench doctor during a gdrbench bandwidth; where it stays: reseat the card, "
     "riser or cable at {}, set the slot's speed to Auto in the BIOS",
     "the machine has to be switched off"},
    {"gpu_asleep", Verdict::info,
     "The GPU's PCIe link runs at a lower speed than it can, as is normal while it is idle: sample under "
     "load.",
     "run gdrbench doctor while gdrbench bandwidth uses the GPU"},
    {"slot_limits", Verdict::info,
     "The slot gives this card less than the card can use: fewer lanes or a lower speed.",
     "where it limits the result, move the card to a better slot"},
};

Evidence seen(const topology::Hop& end) {
  const auto text = [](double transfers_per_second, int lanes) {
    return fmt::format("{:.1f} GT/s x{}", transfers_per_second / 1e9, lanes);
  };
  return {fmt::format("/sys/bus/pci/devices/{}/{{current,max}}_link_*", end.address),
          fmt::format("{} of {}", text(end.link.transfers_per_second, end.link.lanes),
                      text(end.link.most_transfers_per_second, end.link.most_lanes))};
}

// The link between a port and what is plugged into it.
void look_at(const Check& self, const topology::Hop& port, const topology::Hop& plugged, bool is_gpu,
             bool is_card, std::vector<Finding>& findings) {
  const topology::PcieLink &above = port.link, &below = plugged.link;
  const int most_lanes = std::min(above.most_lanes, below.most_lanes);
  const double most_speed = std::min(above.most_transfers_per_second, below.most_transfers_per_second);
  const std::vector<Evidence> evidence = {seen(port), seen(plugged)};
  // Zero lanes or speed: nobody tells, or a link that is down.
  if (below.lanes > 0 && below.lanes < most_lanes)
    findings.push_back(find(self, "narrower", plugged.address, evidence));
  if (below.transfers_per_second > 0 && below.transfers_per_second < most_speed)
    findings.push_back(find(self, is_gpu ? "gpu_asleep" : "slower", plugged.address, evidence));
  const bool has_fewer_lanes = above.most_lanes > 0 && above.most_lanes < below.most_lanes;
  const bool is_slower = above.most_transfers_per_second > 0 &&
                         above.most_transfers_per_second < below.most_transfers_per_second;
  if (is_card && (has_fewer_lanes || is_slower))
    findings.push_back(find(self, "slot_limits", plugged.address, evidence));
}

std::vector<Finding> run(const Check& self, const Facts& facts) {
  // A guest is shown links that the hypervisor made up.
  if (is_virtual_machine(facts.root)) return {};
  std::vector<Finding> findings;
  std::set<std::string> known;
  const auto follow = [&](const topology::PciFunction& function, bool is_gpu) {
    const std::vector<topology::Hop>& hops = function.hops;
    // From the card upwards every second step is a link; the others are within a switch.
    for (std::size_t at = hops.size(); at >= 2; at -= 2) {
      const bool is_card = at == hops.size();
      const topology::Hop &port = hops[at - 2], &plugged = hops[at - 1];
      // Functions of one card share their link.
      if (!known.insert(port.address).second) break;
      look_at(self, port, plugged, is_gpu && is_card, is_card, findings);
    }
  };
  for (const topology::Gpu& gpu : facts.machine.gpus) follow(gpu.pci, true);
  for (const topology::Nic* nic : rdma_nics(facts.machine)) follow(nic->pci, false);
  if (findings.empty() && !known.empty()) findings.push_back(find(self, "ok", "", {}));
  return findings;
}

}  // namespace

const Check pcie_link_check = {
    .name = "pcie_link",
    .question = "Does every PCIe link of GPUs and NICs run at its best?",
    .looks_at =
        "/sys/bus/pci/devices/*/{current,max}_link_{speed,width} of each GPU, each RDMA NIC and the "
        "bridges above them",
    .layer = Layer::performance,
    .causes = causes,
    .run = run};

}  // namespace gdrbench::doctor
