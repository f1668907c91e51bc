#include "benchmarks/gpu_choice.hpp"

#include <algorithm>

namespace gdrbench::benchmarks {
namespace {

using topology::PciDistance;

// GPU 0 when there is none, or only the one to be avoided.
int nearest(const std::vector<PciDistance>& distances, std::optional<int> avoid) {
  std::optional<int> best;
  for (int gpu = 0; gpu < static_cast<int>(distances.size()); ++gpu) {
    if (gpu == avoid) continue;
    if (!best || distances[static_cast<std::size_t>(gpu)] < distances[static_cast<std::size_t>(*best)])
      best = gpu;
  }
  return best.value_or(0);
}

}  // namespace

std::vector<PciDistance> gpu_distances(const EndInfo& end, const std::string& device) {
  std::vector<PciDistance> distances(end.gpus.size(), PciDistance::unknown);
  if (device.empty()) return distances;
  for (const RdmaDeviceInfo& one : end.rdma.devices) {
    if (one.name != device) continue;
    std::copy_n(one.gpu_distances.begin(), std::min(distances.size(), one.gpu_distances.size()),
                distances.begin());
    break;
  }
  return distances;
}

std::string gpu_uuid(const EndInfo& end, int gpu) {
  const auto index = static_cast<std::size_t>(gpu);
  return gpu < 0 || index >= end.gpus.size() ? "" : end.gpus[index].uuid;
}

GpuChoice choose_gpus(const GpuQuestion& question) {
  const auto taken = [&](std::optional<int> other) { return question.one_node ? other : std::nullopt; };
  GpuChoice choice;
  choice.gpu = question.asked ? *question.asked : nearest(question.here, taken(question.peer_asked));
  choice.peer_gpu = question.peer_asked ? *question.peer_asked : nearest(question.there, taken(choice.gpu));
  return choice;
}

}  // namespace gdrbench::benchmarks
