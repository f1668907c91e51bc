#include "doctor/facts/facts.hpp"

#include <type_traits>

namespace gdrbench::doctor {
namespace {

using nlohmann::json;

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <class T>
bool is_of_type(const json& value) {
  if constexpr (std::is_same_v<T, bool>) return value.is_boolean();
  if constexpr (std::is_arithmetic_v<T>) return value.is_number_integer();
  return value.is_string();
}

// Members that are absent are left out.
struct WriteMember {
  json& object;
  template <class T>
  void operator()(const char* key, const T& value) const {
    if constexpr (IsOptional<T>::value) {
      if (value) object[key] = *value;
    } else {
      object[key] = value;
    }
  }
};

// Leaves the member as it is when the key is missing or of another type.
struct ReadMember {
  const json& object;
  template <class T>
  void operator()(const char* key, T& member) const {
    const auto found = object.find(key);
    if (found == object.end()) return;
    if constexpr (IsOptional<T>::value) {
      if (is_of_type<typename T::value_type>(*found)) member = found->template get<typename T::value_type>();
    } else {
      if (is_of_type<T>(*found)) member = found->template get<T>();
    }
  }
};

// The members of each type with their keys, which recordings keep from release to release: written and read
// by one list. `Gpu` is GpuAnswer or const GpuAnswer, and so on.
template <class Gpu, class Visit>
void each_member_of_gpu(Gpu& gpu, const Visit& visit) {
  visit("index", gpu.index);
  visit("pci_address", gpu.pci_address);
  visit("name", gpu.name);
  visit("gpu_direct_rdma", gpu.gpu_direct_rdma);
  visit("dmabuf", gpu.dmabuf);
  visit("vmm_rdma", gpu.vmm_rdma);
  visit("writes_ordering", gpu.writes_ordering);
}

template <class Port, class Visit>
void each_member_of_port(Port& port, const Visit& visit) {
  visit("number", port.number);
  visit("state", port.state);
  visit("link_layer", port.link_layer);
  visit("active_mtu", port.active_mtu);
  visit("most_mtu", port.max_mtu);
}

template <class Device, class Visit>
void each_member_of_rdma(Device& device, const Visit& visit) {
  visit("device", device.device);
  visit("fabric", device.fabric);
  visit("open_errno", device.open_errno);
  visit("dmabuf_probe", device.dmabuf_probe);
}

template <class Probe, class Visit>
void each_member_of_probe(Probe& probe, const Visit& visit) {
  visit("what", probe.what);
  visit("device", probe.device);
  visit("gpu", probe.gpu);
  visit("outcome", probe.outcome);
  visit("errno", probe.errno_value);
  visit("status", probe.status);
  visit("vendor_error", probe.vendor_error);
  visit("text", probe.text);
}

template <class All, class Visit>
void each_member_of_answers(All& answers, const Visit& visit) {
  visit("cuda_unavailable", answers.cuda_unavailable);
  visit("verbs_asked", answers.verbs_queried);
  visit("memlock_bytes", answers.memlock_bytes);
  visit("privileged", answers.privileged);
  visit("kernel_log", answers.kernel_log);
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

}  // namespace

json to_json(const Answers& answers) {
  json document;
  each_member_of_answers(answers, WriteMember{document});
  for (const char* list : {"gpus", "rdma", "probes"}) document[list] = json::array();
  for (const GpuAnswer& gpu : answers.gpus)
    each_member_of_gpu(gpu, WriteMember{document["gpus"].emplace_back()});
  for (const RdmaAnswer& device : answers.rdma) {
    json& object = document["rdma"].emplace_back();
    each_member_of_rdma(device, WriteMember{object});
    object["ports"] = json::array();
    for (const PortAnswer& port : device.ports)
      each_member_of_port(port, WriteMember{object["ports"].emplace_back()});
  }
  for (const ProbeResult& probe : answers.probes)
    each_member_of_probe(probe, WriteMember{document["probes"].emplace_back()});
  if (!answers.counters_before.empty()) document["counters_before"] = answers.counters_before;
  if (!answers.counters_after.empty()) document["counters_after"] = answers.counters_after;
  return document;
}

Answers answers_from_json(const json& document) {
  Answers answers;
  if (!document.is_object()) return answers;
  each_member_of_answers(answers, ReadMember{document});
  for (const json& gpu : objects(document, "gpus"))
    each_member_of_gpu(answers.gpus.emplace_back(), ReadMember{gpu});
  for (const json& device : objects(document, "rdma")) {
    RdmaAnswer& answer = answers.rdma.emplace_back();
    each_member_of_rdma(answer, ReadMember{device});
    for (const json& port : objects(device, "ports"))
      each_member_of_port(answer.ports.emplace_back(), ReadMember{port});
  }
  for (const json& probe : objects(document, "probes"))
    each_member_of_probe(answers.probes.emplace_back(), ReadMember{probe});
  answers.counters_before = numbers(document, "counters_before");
  answers.counters_after = numbers(document, "counters_after");
  return answers;
}

}  // namespace gdrbench::doctor
