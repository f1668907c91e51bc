#include "benchmarks/device_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace gdrbench::benchmarks {
namespace {

using topology::PciDistance;

// The less the better. Fabrics are in the order of preference.
auto rank(const Candidate& device) {
  return std::make_tuple(device.fabric, device.distance, -device.bytes_per_second);
}

bool is_better(const Candidate& a, const Candidate& b) {
  return rank(a) < rank(b);
}

bool fits(const Candidate& a, const Candidate& b) {
  return a.fabric == b.fabric && a.link_layer == b.link_layer;
}

void place_near_gpu(Candidate& device, const std::vector<PciDistance>& distances, std::optional<int> asked) {
  for (int gpu = 0; gpu < static_cast<int>(distances.size()); ++gpu) {
    const PciDistance distance = distances[static_cast<std::size_t>(gpu)];
    if ((asked && *asked != gpu) || (device.gpu && distance >= device.distance)) continue;
    device.gpu = gpu;
    device.distance = distance;
  }
}

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

std::vector<Candidate> candidates(const EndInfo& end, const std::vector<RdmaDeviceInfo>& devices,
                                  std::optional<int> gpu, bool gpu_memory) {
  std::vector<Candidate> found;
  for (const RdmaDeviceInfo& device : devices) {
    Candidate one{.name = device.name,
                  .fabric = device.fabric,
                  .link_layer = device.link_layer,
                  .bytes_per_second = device.link_bytes_per_second};
    if (gpu_memory) place_near_gpu(one, gpu_distances(end, one.name), gpu);
    found.push_back(std::move(one));
  }
  return found;
}

std::optional<DevicePair> choose_devices(std::vector<Candidate> here, std::vector<Candidate> there,
                                         bool one_node) {
  std::stable_sort(here.begin(), here.end(), is_better);
  std::stable_sort(there.begin(), there.end(), is_better);
  for (const Candidate& own : here) {
    const Candidate* chosen = nullptr;
    for (const Candidate& other : there) {
      if (!fits(own, other)) continue;
      const bool same_name = other.name == own.name;
      if (chosen == nullptr ||
          (same_name && chosen->name != own.name && (one_node || !is_better(*chosen, other))))
        chosen = &other;
    }
    if (chosen != nullptr) return DevicePair{own, *chosen};
  }
  return std::nullopt;
}

std::string describe_choice(const Candidate& chosen, std::size_t among) {
  if (among < 2) return "";
  std::string text = fmt::format("{} of {} devices:", chosen.name, among);
  if (chosen.gpu) text += fmt::format(" {} to GPU {},", topology::to_string(chosen.distance), *chosen.gpu);
  return text + fmt::format(" {:g} Gb/s", chosen.bytes_per_second * 8 / 1e9);
}

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
  choice.gpu = question.asked ? *question.asked : nearest(question.here, taken(question.remote_asked));
  choice.remote_gpu =
      question.remote_asked ? *question.remote_asked : nearest(question.there, taken(choice.gpu));
  return choice;
}

}  // namespace gdrbench::benchmarks
