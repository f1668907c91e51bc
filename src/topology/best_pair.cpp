#include "topology/best_pair.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "topology/cores.hpp"

namespace gdrbench::topology {
namespace {

// The active port with the highest rate, else any with the highest.
RdmaPort best_port(const Nic& nic) {
  const auto worse = [](const RdmaPort& a, const RdmaPort& b) {
    return std::make_tuple(a.is_active(), a.bytes_per_second) <
           std::make_tuple(b.is_active(), b.bytes_per_second);
  };
  const auto best = std::max_element(nic.ports.begin(), nic.ports.end(), worse);
  return best == nic.ports.end() ? RdmaPort{} : *best;
}

bool is_of(const Nic& nic, const Hop& hop) {
  return std::any_of(nic.pci.hops.begin(), nic.pci.hops.end(),
                     [&](const Hop& own) { return own.address == hop.address; });
}

// What two NICs are told apart by; the less the better, so that an unknown rate comes after all others.
auto rank(const Machine& machine, const BestPair& pair) {
  return std::make_tuple(machine.nics[pair.nic].rdma_devices.empty(), pair.distance, -pair.bytes_per_second,
                         !pair.port.is_active());
}

// The NICs between which only the number of their GPUs decides.
std::vector<BestPair> equal_choices(const Machine& machine, std::size_t gpu) {
  std::vector<BestPair> best;
  for (std::size_t nic = 0; nic < machine.nics.size(); ++nic) {
    const PciFunction& own = machine.gpus[gpu].pci;
    const PciFunction& other = machine.nics[nic].pci;
    const RdmaPort port = best_port(machine.nics[nic]);
    const BestPair pair{.gpu = gpu,
                        .nic = nic,
                        .port = port,
                        .distance = distance_between(place_of(own), place_of(other)),
                        .bytes_per_second = pair_bytes_per_second(machine.gpus[gpu], machine.nics[nic], port),
                        .cores = cores_next_to_both(other.cores, own.cores)};
    if (!best.empty() && rank(machine, best.front()) < rank(machine, pair)) continue;
    if (!best.empty() && rank(machine, pair) < rank(machine, best.front())) best.clear();
    best.push_back(pair);
  }
  return best;
}

}  // namespace

double pair_bytes_per_second(const Gpu& gpu, const Nic& nic, const RdmaPort& port) {
  double least = port.bytes_per_second;
  bool nic_is_known = least > 0;
  for (const Hop& hop : hops_between(gpu.pci.hops, nic.pci.hops)) {
    const double rate = max_bytes_per_second(hop.link);
    if (rate == 0) continue;
    nic_is_known |= is_of(nic, hop);
    if (least == 0 || rate < least) least = rate;
  }
  // The GPU's own link would promise for a NIC what nobody has seen of it.
  return nic_is_known ? least : 0;
}

std::vector<BestPair> best_pairs(const Machine& machine) {
  if (machine.nics.empty()) return {};
  std::vector<std::vector<BestPair>> choices;
  choices.reserve(machine.gpus.size());
  for (std::size_t gpu = 0; gpu < machine.gpus.size(); ++gpu) choices.push_back(equal_choices(machine, gpu));
  // Those with the fewest choices first: others can still turn to another NIC.
  std::vector<std::size_t> order(choices.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return choices[a].size() < choices[b].size(); });
  std::vector<int> gpus_of(machine.nics.size(), 0);
  std::vector<BestPair> pairs(choices.size());
  for (const std::size_t gpu : order) {
    pairs[gpu] = *std::min_element(
        choices[gpu].begin(), choices[gpu].end(),
        [&](const BestPair& a, const BestPair& b) { return gpus_of[a.nic] < gpus_of[b.nic]; });
    ++gpus_of[pairs[gpu].nic];
  }
  return pairs;
}

}  // namespace gdrbench::topology
