#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gdrbench/end_info.hpp"
#include "topology/pci_path.hpp"

namespace gdrbench::benchmarks {

/// The distance of an end's RDMA device to each of its GPUs, by GPU number; one entry a GPU. `end` is its
/// description of itself; without a device, or of an end that does not tell, all are unknown.
std::vector<topology::PciDistance> gpu_distances(const EndInfo& end, const std::string& device);

/// The UUID of a GPU as the end describes it; empty when it does not.
std::string gpu_uuid(const EndInfo& end, int gpu);

/// Which GPU each end takes. `asked`: by its user. `one_node`: the ends share their GPUs, and take two
/// different ones where there are two.
struct GpuQuestion {
  std::vector<topology::PciDistance> here, there;
  std::optional<int> asked, peer_asked;
  bool one_node = false;
};
struct GpuChoice {
  int gpu = 0;
  int peer_gpu = 0;
};
/// What was asked for, else the GPU nearest to the end's RDMA device, of equals that with the lowest number.
GpuChoice choose_gpus(const GpuQuestion& question);

}  // namespace gdrbench::benchmarks
