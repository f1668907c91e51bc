#include "report/local_json.hpp"

namespace gdrbench::report {
namespace {

using Json = nlohmann::ordered_json;

Json labels_json(const std::vector<std::pair<std::string, std::string>>& labels) {
  Json json = Json::object();
  for (const auto& [name, value] : labels) json[name] = value;
  return json;
}

Json repetition_json(const LocalResult& result, const LocalRepetition& repetition) {
  const bool has_rate = result.moves_data && repetition.time_us > 0;
  return {
      {"iterations", repetition.iterations},
      {"time_us", repetition.time_us},
      {"device_time_us", repetition.device_time_us ? Json(*repetition.device_time_us) : Json(nullptr)},
      {"bytes_per_second",
       has_rate ? Json(static_cast<double>(result.size_bytes) / repetition.time_us * 1e6) : Json(nullptr)}};
}

}  // namespace

void add_local(Json& own, const ResultDocument& document) {
  if (document.local.empty() && document.local_skipped.empty()) return;
  Json results = Json::array(), skipped = Json::array(), crossovers = Json::array();
  for (const LocalResult& result : document.local) {
    Json repetitions = Json::array();
    for (const LocalRepetition& one : result.repetitions) repetitions.push_back(repetition_json(result, one));
    results.push_back({{"suite", result.suite},
                       {"what", result.what},
                       {"labels", labels_json(result.labels)},
                       {"size_bytes", result.size_bytes},
                       {"repetitions", std::move(repetitions)}});
  }
  for (const LocalSkipped& one : document.local_skipped)
    skipped.push_back({{"suite", one.suite}, {"what", one.what}, {"reason", one.reason}});
  for (const LocalCrossover& one : document.local_crossovers)
    crossovers.push_back({{"suite", one.suite},
                          {"what", one.what},
                          {"labels", labels_json(one.labels)},
                          {"from_bytes", one.from_bytes ? Json(*one.from_bytes) : Json(nullptr)}});
  own["local"] = std::move(results);
  own["local_skipped"] = std::move(skipped);
  own["local_crossovers"] = std::move(crossovers);
}

}  // namespace gdrbench::report
