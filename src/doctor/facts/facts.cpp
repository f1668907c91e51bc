#include "doctor/facts/facts.hpp"

#include <tuple>
#include <type_traits>

#include "base/field_list.hpp"

// The keys are those of recordings, which keep from release to release.
namespace gdrbench {

template <>
struct FieldList<doctor::GpuAnswer> {
  using G = doctor::GpuAnswer;
  static constexpr bool omits_absent = true;
  static constexpr auto fields = std::tuple(
      field("index", &G::index, ""), field("pci_address", &G::pci_address, ""), field("name", &G::name, ""),
      field("gpu_direct_rdma", &G::gpu_direct_rdma, ""), field("dmabuf", &G::dmabuf, ""),
      field("vmm_rdma", &G::vmm_rdma, ""), field("writes_ordering", &G::writes_ordering, ""));
};

template <>
struct FieldList<doctor::PortAnswer> {
  using P = doctor::PortAnswer;
  static constexpr auto fields = std::tuple(
      field("number", &P::number, ""), field("state", &P::state, ""), field("link_layer", &P::link_layer, ""),
      field("active_mtu", &P::active_mtu, ""), field("most_mtu", &P::max_mtu, ""));
};

template <>
struct FieldList<doctor::RdmaAnswer> {
  using R = doctor::RdmaAnswer;
  static constexpr bool omits_absent = true;
  static constexpr auto fields =
      std::tuple(field("device", &R::device, ""), field("fabric", &R::fabric, ""),
                 field("open_errno", &R::open_errno, ""), field("dmabuf_probe", &R::dmabuf_probe, ""),
                 field("ports", &R::ports, ""));
};

template <>
struct FieldList<doctor::ProbeResult> {
  using P = doctor::ProbeResult;
  static constexpr auto fields = std::tuple(
      field("what", &P::what, ""), field("device", &P::device, ""), field("gpu", &P::gpu, ""),
      field("outcome", &P::outcome, ""), field("errno", &P::errno_value, ""), field("status", &P::status, ""),
      field("vendor_error", &P::vendor_error, ""), field("text", &P::text, ""));
};

// Beside them, counters by name.
template <>
struct FieldList<doctor::Answers> {
  using A = doctor::Answers;
  static constexpr bool omits_absent = true;
  static constexpr auto fields =
      std::tuple(field("cuda_unavailable", &A::cuda_unavailable, ""), field("gpus", &A::gpus, ""),
                 field("verbs_asked", &A::verbs_queried, ""), field("rdma", &A::rdma, ""),
                 field("probes", &A::probes, ""), field("memlock_bytes", &A::memlock_bytes, ""),
                 field("privileged", &A::privileged, ""), field("kernel_log", &A::kernel_log, ""));
};

namespace doctor {
namespace {

using nlohmann::json;

// Unlike value_from_json, leaves as it is what is missing or of another type. Whether there was a value.
template <class T>
bool take_value(const json& value, T& target) {
  if constexpr (IsOptional<T>::value) {
    typename T::value_type found{};
    if (!take_value(value, found)) return false;
    target = std::move(found);
  } else if constexpr (IsVector<T>::value) {
    if (!value.is_array()) return false;
    for (const json& element : value)
      if (typename T::value_type found{}; take_value(element, found)) target.push_back(std::move(found));
  } else if constexpr (Listed<T>) {
    if (!value.is_object()) return false;
    for_each_field<T>([&](const auto& field) {
      if (const auto member = value.find(field.name); member != value.end())
        take_value(*member, target.*field.member);
    });
  } else {
    const bool has_type = std::is_same_v<T, bool>   ? value.is_boolean()
                          : std::is_arithmetic_v<T> ? value.is_number_integer()
                                                    : value.is_string();
    if (!has_type) return false;
    target = value.get<T>();
  }
  return true;
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
  json document = value_to_json<json>(answers);
  if (!answers.counters_before.empty()) document["counters_before"] = answers.counters_before;
  if (!answers.counters_after.empty()) document["counters_after"] = answers.counters_after;
  return document;
}

Answers answers_from_json(const json& document) {
  Answers answers;
  if (!take_value(document, answers)) return answers;
  answers.counters_before = numbers(document, "counters_before");
  answers.counters_after = numbers(document, "counters_after");
  return answers;
}

}  // namespace doctor
}  // namespace gdrbench
