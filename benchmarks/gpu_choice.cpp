#include "benchmarks/gpu_choice.hpp"

#include <algorithm>

namespace gdrbench::benchmarks {
namespace {

using nlohmann::json;
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

// A member of that kind, else null: what the other end says is not relied on.
const json* member(const json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

}  // namespace

std::vector<PciDistance> gpu_distances(const json& end, const std::string& device) {
  const json* gpus = member(end, "gpus");
  const std::size_t count = gpus != nullptr && gpus->is_array() ? gpus->size() : 0;
  std::vector<PciDistance> distances(count, PciDistance::unknown);
  const json* rdma = member(end, "rdma");
  const json* devices = rdma != nullptr ? member(*rdma, "devices") : nullptr;
  if (device.empty() || devices == nullptr || !devices->is_array()) return distances;
  for (const json& one : *devices) {
    const json* name = member(one, "name");
    const json* told = member(one, "gpu_distances");
    if (name == nullptr || *name != device || told == nullptr || !told->is_array()) continue;
    for (std::size_t gpu = 0; gpu < std::min(count, told->size()); ++gpu)
      if ((*told)[gpu].is_string()) distances[gpu] = topology::pci_distance((*told)[gpu].get<std::string>());
    break;
  }
  return distances;
}

std::string gpu_uuid(const json& end, int gpu) {
  const json* gpus = member(end, "gpus");
  const auto index = static_cast<std::size_t>(gpu);
  if (gpus == nullptr || !gpus->is_array() || gpu < 0 || index >= gpus->size()) return "";
  const json* uuid = member((*gpus)[index], "uuid");
  return uuid != nullptr && uuid->is_string() ? uuid->get<std::string>() : "";
}

GpuChoice choose_gpus(const GpuQuestion& question) {
  const auto taken = [&](std::optional<int> other) { return question.one_node ? other : std::nullopt; };
  GpuChoice choice;
  choice.gpu = question.asked ? *question.asked : nearest(question.here, taken(question.peer_asked));
  choice.peer_gpu = question.peer_asked ? *question.peer_asked : nearest(question.there, taken(choice.gpu));
  return choice;
}

}  // namespace gdrbench::benchmarks
