#include <fmt/format.h>

#include "doctor/check_list.hpp"
#include "doctor/host.hpp"
#include "topology/pci_path.hpp"

namespace gdrbench::doctor {
namespace {

using topology::PciDistance;

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "GPU and NIC are near each other."},
    {"host_bridge", Verdict::warn,
     "No NIC shares a PCIe switch with this GPU: traffic between them takes the way through the CPU's host "
     "bridge, where the staged path may win. That is what this machine is, and no fault.",
     "measure both (gdrbench compare --paths rdma,gdr, both directions); where slots allow, move GPU and NIC "
     "below one PCIe switch",
     "moving cards needs the machine switched off"},
    {"sockets", Verdict::warn,
     "The NIC nearest to this GPU belongs to another CPU socket: traffic between them crosses the link "
     "between the sockets, where the staged path often wins.",
     "use a GPU and a NIC of one socket (gdrbench topology lists the pairs; --gpu, --device), or move one of "
     "the cards",
     "moving cards needs the machine switched off"},
    {"unknown", Verdict::unknown, "How far this GPU is from the NICs cannot be seen.",
     "run the doctor on the host itself: containers and hypervisors hide the bridges; nvidia-smi topo -m may "
     "tell more"},
};

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

}  // namespace

const Check distance_check = {.name = "distance",
                              .question = "Is a NIC near each GPU?",
                              .looks_at = "/sys/bus/pci/devices, numa_node there, /proc/cpuinfo (Grace)",
                              .layer = Layer::performance,
                              .causes = causes,
                              .run = run};

}  // namespace gdrbench::doctor
