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

/// The distance of an end's RDMA device to each of its GPUs, by GPU number; one entry a GPU. `end` is its
/// description of itself; without a device, or of an end that does not tell, all are unknown.
std::vector<topology::PciDistance> gpu_distances(const EndInfo& end, const std::string& device);

/// The UUID of a GPU as the end describes it; empty when it does not.
std::string gpu_uuid(const EndInfo& end, int gpu);

/// Which GPU each end takes. `asked`: by its user. `one_node`: the ends share their GPUs, and take two
/// different ones where there are two.
struct GpuQuestion {
  std::vector<topology::PciDistance> here, there;
  std::optional<int> asked, remote_asked;
  bool one_node = false;
};
struct GpuChoice {
  int gpu = 0;
  int remote_gpu = 0;
};
/// What was asked for, else the GPU nearest to the end's RDMA device, of equals that with the lowest number.
GpuChoice choose_gpus(const GpuQuestion& question);

}  // namespace gdrbench::benchmarks
