#include "doctor/answers.hpp"

#include <type_traits>

namespace gdrbench::doctor {
namespace {

using nlohmann::json;

template <class T>
void put(json& object, const char* key, const std::optional<T>& value) {
  if (value) object[key] = *value;
}

// Leaves the target as it is when the member is missing or of another kind.
template <class T>
void take(const json& object, const char* key, T& target) {
  const auto found = object.find(key);
  if (found == object.end()) return;
  if constexpr (std::is_same_v<T, bool>) {
    if (found->is_boolean()) target = found->template get<bool>();
  } else if constexpr (std::is_arithmetic_v<T>) {
    if (found->is_number_integer()) target = found->template get<T>();
  } else {
    if (found->is_string()) target = found->template get<T>();
  }
}

template <class T>
void take(const json& object, const char* key, std::optional<T>& target) {
  T value{};
  bool is_there = false;
  if (const auto found = object.find(key); found != object.end()) {
    if constexpr (std::is_same_v<T, bool>) {
      is_there = found->is_boolean();
    } else if constexpr (std::is_arithmetic_v<T>) {
      is_there = found->is_number_integer();
    } else {
      is_there = found->is_string();
    }
  }
  if (!is_there) return;
  take(object, key, value);
  target = value;
}

// The objects of a list; none where it is no list.
std::vector<json> objects(const json& document, const char* key) {
  std::vector<json> list;
  const auto found = document.find(key);
  if (found == document.end() || !found->is_array()) return list;
  for (const json& one : *found)
    if (one.is_object()) list.push_back(one);
  return list;
}

// The numbers of an object.
std::map<std::string, std::uint64_t> numbers(const json& document, const char* key) {
  std::map<std::string, std::uint64_t> values;
  const auto found = document.find(key);
  if (found == document.end() || !found->is_object()) return values;
  for (const auto& [name, value] : found->items())
    if (value.is_number_unsigned() || (value.is_number_integer() && value.get<std::int64_t>() >= 0))
      values[name] = value.get<std::uint64_t>();
  return values;
}

json to_json(const GpuAnswer& gpu) {
  json object = {{"index", gpu.index}, {"pci_address", gpu.pci_address}, {"name", gpu.name}};
  put(object, "gpu_direct_rdma", gpu.gpu_direct_rdma);
  put(object, "dmabuf", gpu.dmabuf);
  put(object, "vmm_rdma", gpu.vmm_rdma);
  put(object, "writes_ordering", gpu.writes_ordering);
  return object;
}

GpuAnswer gpu_from(const json& object) {
  GpuAnswer gpu;
  take(object, "index", gpu.index);
  take(object, "pci_address", gpu.pci_address);
  take(object, "name", gpu.name);
  take(object, "gpu_direct_rdma", gpu.gpu_direct_rdma);
  take(object, "dmabuf", gpu.dmabuf);
  take(object, "vmm_rdma", gpu.vmm_rdma);
  take(object, "writes_ordering", gpu.writes_ordering);
  return gpu;
}

json to_json(const PortAnswer& port) {
  return {{"number", port.number},
          {"state", port.state},
          {"link_layer", port.link_layer},
          {"active_mtu", port.active_mtu},
          {"most_mtu", port.most_mtu}};
}

PortAnswer port_from(const json& object) {
  PortAnswer port;
  take(object, "number", port.number);
  take(object, "state", port.state);
  take(object, "link_layer", port.link_layer);
  take(object, "active_mtu", port.active_mtu);
  take(object, "most_mtu", port.most_mtu);
  return port;
}

json to_json(const RdmaAnswer& device) {
  json object = {{"device", device.device}, {"fabric", device.fabric}, {"ports", json::array()}};
  put(object, "open_errno", device.open_errno);
  put(object, "dmabuf_probe", device.dmabuf_probe);
  for (const PortAnswer& port : device.ports) object["ports"].push_back(to_json(port));
  return object;
}

RdmaAnswer rdma_from(const json& object) {
  RdmaAnswer device;
  take(object, "device", device.device);
  take(object, "fabric", device.fabric);
  take(object, "open_errno", device.open_errno);
  take(object, "dmabuf_probe", device.dmabuf_probe);
  for (const json& port : objects(object, "ports")) device.ports.push_back(port_from(port));
  return device;
}

json to_json(const ProbeAnswer& probe) {
  return {{"what", probe.what},
          {"device", probe.device},
          {"gpu", probe.gpu},
          {"outcome", probe.outcome},
          {"errno", probe.errno_value},
          {"status", probe.status},
          {"vendor_error", probe.vendor_error},
          {"text", probe.text}};
}

ProbeAnswer probe_from(const json& object) {
  ProbeAnswer probe;
  take(object, "what", probe.what);
  take(object, "device", probe.device);
  take(object, "gpu", probe.gpu);
  take(object, "outcome", probe.outcome);
  take(object, "errno", probe.errno_value);
  take(object, "status", probe.status);
  take(object, "vendor_error", probe.vendor_error);
  take(object, "text", probe.text);
  return probe;
}

}  // namespace

json to_json(const Answers& answers) {
  json document = {{"cuda_unavailable", answers.cuda_unavailable},
                   {"gpus", json::array()},
                   {"verbs_asked", answers.verbs_asked},
                   {"rdma", json::array()},
                   {"probes", json::array()}};
  for (const GpuAnswer& gpu : answers.gpus) document["gpus"].push_back(to_json(gpu));
  for (const RdmaAnswer& device : answers.rdma) document["rdma"].push_back(to_json(device));
  for (const ProbeAnswer& probe : answers.probes) document["probes"].push_back(to_json(probe));
  put(document, "memlock_bytes", answers.memlock_bytes);
  put(document, "privileged", answers.privileged);
  put(document, "kernel_log", answers.kernel_log);
  if (!answers.counters_before.empty()) document["counters_before"] = answers.counters_before;
  if (!answers.counters_after.empty()) document["counters_after"] = answers.counters_after;
  return document;
}

Answers answers_from_json(const json& document) {
  Answers answers;
  if (!document.is_object()) return answers;
  take(document, "cuda_unavailable", answers.cuda_unavailable);
  take(document, "verbs_asked", answers.verbs_asked);
  for (const json& gpu : objects(document, "gpus")) answers.gpus.push_back(gpu_from(gpu));
  for (const json& device : objects(document, "rdma")) answers.rdma.push_back(rdma_from(device));
  for (const json& probe : objects(document, "probes")) answers.probes.push_back(probe_from(probe));
  take(document, "memlock_bytes", answers.memlock_bytes);
  take(document, "privileged", answers.privileged);
  take(document, "kernel_log", answers.kernel_log);
  answers.counters_before = numbers(document, "counters_before");
  answers.counters_after = numbers(document, "counters_after");
  return answers;
}

}  // namespace gdrbench::doctor
