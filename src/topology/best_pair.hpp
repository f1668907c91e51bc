#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "topology/machine.hpp"

namespace gdrbench::topology {

/// A GPU and the NIC that it does best with.
struct BestPair {
  std::size_t gpu = 0, nic = 0;  ///< places in Machine::gpus and Machine::nics
  RdmaPort port;                 ///< the NIC's best; without a device where it has none, or none is known
  PciDistance distance = PciDistance::unknown;
  double bytes_per_second = 0;  ///< see pair_bytes_per_second
  std::string cores;            ///< next to both, else to the NIC, else to the GPU
};

/// One for each GPU, in their order; none without a NIC. RDMA devices come before NICs that are none; then
/// the shortest distance, the highest rate, an active port, and of equals the one that the fewest GPUs have.
std::vector<BestPair> best_pairs(const Machine& machine);

/// The least of the port's rate and of what the PCIe links between the two carry at most, as far as they are
/// known. 0, unknown, where neither the port's rate nor a link on the NIC's side of the path is.
double pair_bytes_per_second(const Gpu& gpu, const Nic& nic, const RdmaPort& port);

}  // namespace gdrbench::topology
