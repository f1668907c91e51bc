#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "doctor/check.hpp"
#include "doctor/checks/checks.hpp"
#include "doctor/facts/host.hpp"
#include "topology/pci_function.hpp"
#include "topology/pci_path.hpp"

namespace gdrbench::doctor {
namespace {

namespace pcie_link {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "Every PCIe link of GPUs and NICs runs at full speed and width."},
    {"narrower", Verdict::warn, "This PCIe link runs with fewer lanes than both of its ends support.",
     "reseat the card, riser or cable at {}; check the slot's bifurcation in the BIOS, and the kernel log "
     "for AER errors",
     "the machine has to be switched off"},
    {"slower", Verdict::warn, "This PCIe link runs at a lower speed than both of its ends support.",
     "sample again under load: gdrbench doctor during a gdrbench bandwidth; if it persists: reseat the card, "
     "riser or cable at {}, set the slot's speed to Auto in the BIOS",
     "the machine has to be switched off"},
    {"gpu_asleep", Verdict::info,
     "The GPU's PCIe link runs at a lower speed than it supports, as is normal while it is idle: sample "
     "under load.",
     "run gdrbench doctor while gdrbench bandwidth uses the GPU"},
    {"slot_limits", Verdict::info,
     "The slot gives this card less than the card supports: fewer lanes or a lower speed.",
     "if it limits the result, move the card to a better slot"},
};

constexpr Check check = {.name = "pcie_link",
                         .question = "Does every PCIe link of GPUs and NICs run at full speed and width?",
                         .looks_at =
                             "/sys/bus/pci/devices/*/{current,max}_link_{speed,width} of each GPU, each RDMA "
                             "NIC and the bridges above them",
                         .layer = Layer::performance,
                         .causes = causes,
                         .run = run};

Evidence seen(const topology::Hop& end) {
  const auto text = [](double transfers_per_second, int lanes) {
    return fmt::format("{:.1f} GT/s x{}", transfers_per_second / 1e9, lanes);
  };
  return {fmt::format("/sys/bus/pci/devices/{}/{{current,max}}_link_*", end.address),
          fmt::format("{} of {}", text(end.link.transfers_per_second, end.link.lanes),
                      text(end.link.max_transfers_per_second, end.link.max_lanes))};
}

// The link between a port and what is plugged into it.
void look_at(const Check& self, const topology::Hop& port, const topology::Hop& plugged, bool is_gpu,
             bool is_card, std::vector<Finding>& findings) {
  const topology::PcieLink &above = port.link, &below = plugged.link;
  const int max_lanes = std::min(above.max_lanes, below.max_lanes);
  const double max_speed = std::min(above.max_transfers_per_second, below.max_transfers_per_second);
  const std::vector<Evidence> evidence = {seen(port), seen(plugged)};
  // Zero lanes or speed: nobody tells, or a link that is down.
  if (below.lanes > 0 && below.lanes < max_lanes)
    findings.push_back(find(self, "narrower", plugged.address, evidence));
  if (below.transfers_per_second > 0 && below.transfers_per_second < max_speed)
    findings.push_back(find(self, is_gpu ? "gpu_asleep" : "slower", plugged.address, evidence));
  const bool has_fewer_lanes = above.max_lanes > 0 && above.max_lanes < below.max_lanes;
  const bool is_slower =
      above.max_transfers_per_second > 0 && above.max_transfers_per_second < below.max_transfers_per_second;
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

}  // namespace pcie_link

namespace relaxed_ordering {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "PCIe relaxed ordering is on for the NICs."},
    {"off", Verdict::warn,
     "PCIe relaxed ordering is off for this NIC: on many machines that costs more than half of the bandwidth "
     "(others report 15 instead of 47 GB/s).",
     "setpci -s {} CAP_EXP+8.w=10:10 (until the next boot); to make it permanent: the BIOS's \"Relaxed "
     "Ordering\", and for NVIDIA NICs mlxconfig -d {} set PCI_WR_ORDERING=1, which takes effect after a "
     "reboot",
     "programs that poll memory for data, instead of a completion, can see it out of order"},
    {"old_processor", Verdict::info,
     "This is an Intel Haswell or Broadwell, where relaxed ordering itself is slow: the kernel keeps it off "
     "for devices below this root port."},
    {"unknown", Verdict::unknown,
     "Whether relaxed ordering is on for the NICs cannot be seen: the kernel shows that part of PCI "
     "configuration space to root only.",
     "run the doctor with sudo, or: sudo lspci -vv | grep -e '^[0-9a-f]' -e RlxdOrd"},
};

constexpr Check check = {.name = "relaxed_ordering",
                         .question = "Is PCIe relaxed ordering on for the NICs?",
                         .looks_at =
                             "the Device Control register of each RDMA NIC and the kind of its root port "
                             "(/sys/bus/pci/devices/*/config, by libpci)",
                         .layer = Layer::performance,
                         .causes = causes,
                         .run = run};

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

}  // namespace relaxed_ordering

namespace distance {

std::vector<Finding> run(const Check& self, const Facts& facts);

using topology::PciDistance;

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "GPU and NIC are close to each other."},
    {"host_bridge", Verdict::warn,
     "No NIC shares a PCIe switch with this GPU: traffic between them crosses the CPU's host bridge, where "
     "the staged path may be faster. That is the machine's design, not a fault.",
     "measure both (gdrbench compare --paths rdma,gdr, both directions); if slots allow, move GPU and NIC "
     "below one PCIe switch",
     "to move cards the machine has to be switched off"},
    {"sockets", Verdict::warn,
     "The NIC nearest to this GPU belongs to another CPU socket: traffic between them crosses the "
     "inter-socket link, where the staged path is often faster.",
     "use a GPU and a NIC of one socket (gdrbench topology lists the pairs; --gpu, --device), or move one of "
     "the cards",
     "to move cards the machine has to be switched off"},
    {"unknown", Verdict::unknown, "The distance of this GPU to the NICs cannot be seen.",
     "run the doctor on the host itself: containers and hypervisors hide the bridges; nvidia-smi topo -m may "
     "tell more"},
};

constexpr Check check = {.name = "distance",
                         .question = "Is a NIC close to each GPU?",
                         .looks_at = "/sys/bus/pci/devices, numa_node there, /proc/cpuinfo (Grace)",
                         .layer = Layer::performance,
                         .causes = causes,
                         .run = run};

std::string_view cause_of(PciDistance distance) {
  switch (distance) {
    case PciDistance::pix:
    case PciDistance::pxb:
      return "ok";
    case PciDistance::phb:
    case PciDistance::node:
      return "host_bridge";
    case PciDistance::sys:
      return "sockets";
    case PciDistance::unknown:
      break;
  }
  return "unknown";
}

// Those with an RDMA device, and those that might have one if they had a driver, which is the finding of
// another check.
std::vector<const topology::Nic*> candidates(const topology::Machine& machine) {
  std::vector<const topology::Nic*> nics = rdma_nics(machine);
  if (nics.empty()) return nics;
  for (const topology::Nic& nic : machine.nics)
    if (nic.pci.driver.empty()) nics.push_back(&nic);
  return nics;
}

std::string name_of(const topology::Nic& nic) {
  return nic.rdma_devices.empty() ? nic.pci.address
                                  : fmt::format("{} ({})", nic.rdma_devices.front(), nic.pci.address);
}

std::vector<Finding> run(const Check& self, const Facts& facts) {
  const auto nics = candidates(facts.machine);
  // A guest sees the bus that the hypervisor made up.
  if (nics.empty() || is_virtual_machine(facts.root)) return {};
  const bool is_near_anyway = is_grace(facts.root);
  std::vector<Finding> findings;
  for (const topology::Gpu& gpu : facts.machine.gpus) {
    PciDistance best = PciDistance::unknown;
    const topology::Nic* nearest = nics.front();
    for (const topology::Nic* nic : nics) {
      const PciDistance distance =
          topology::distance_between(topology::place_of(gpu.pci), topology::place_of(nic->pci));
      if (distance >= best) continue;
      best = distance;
      nearest = nic;
    }
    findings.push_back(find(self, is_near_anyway ? "ok" : cause_of(best), "GPU " + gpu.pci.address,
                            {{"PCI path to " + name_of(*nearest), std::string(to_string(best))}}));
  }
  return findings;
}

}  // namespace distance

}  // namespace

CheckList pcie_speed_checks() {
  static constexpr const Check* list[] = {&pcie_link::check, &relaxed_ordering::check, &distance::check};
  return list;
}

}  // namespace gdrbench::doctor
