#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gdrbench/end_info.hpp"
#include "topology/pci_path.hpp"

namespace gdrbench::benchmarks {

/// A usable RDMA device of an end, with what tells it from the end's others.
struct Candidate {
  std::string name;
  FabricKind fabric = FabricKind::hardware;
  std::string link_layer;
  double bytes_per_second = 0;  ///< nominal rate of the port
  topology::PciDistance distance =
      topology::PciDistance::unknown;  ///< to its nearest GPU, or the one asked for
  std::optional<int> gpu{};            ///< that GPU
};

/// What an end says of these devices of its own; `gpu` is the one asked for. Without GPU memory no distance
/// counts.
std::vector<Candidate> candidates(const EndInfo& end, const std::vector<RdmaDeviceInfo>& devices,
                                  std::optional<int> gpu, bool gpu_memory);

struct DevicePair {
  Candidate here, there;
};
/// Two devices of the same fabric and link layer; absent where there are none. The best of each end is
/// preferred: hardware before software, near a GPU, fast, early in the list. Of equals at the other end, the
/// one with the same name is taken, since such clusters join NICs of one name by one switch; on one node
/// (`one_node`) the very same device, since two of one node often cannot reach each other.
std::optional<DevicePair> choose_devices(std::vector<Candidate> here, std::vector<Candidate> there,
                                         bool one_node);

/// "mlx5_0 of 4 devices: PIX to GPU 0, 400 Gb/s"; empty where there was no choice.
std::string describe_choice(const Candidate& chosen, std::size_t among);

}  // namespace gdrbench::benchmarks
