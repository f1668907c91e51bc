#include <string>

#include "base/case_fields.hpp"
#include "base/end_fields.hpp"
#include "gdrbench/report.hpp"
#include "gdrbench/version.hpp"
#include "path/layout.hpp"
#include "report/comparison.hpp"
#include "report/figures.hpp"
#include "report/local_json.hpp"
#include "report/overlap.hpp"
#include "report/result_fields.hpp"

namespace gdrbench {
namespace {

using Json = nlohmann::ordered_json;

constexpr int schema = 2;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

// As the lists of fields have it.
template <class T>
Json listed(const T& value) {
  return value_to_json<Json>(value);
}

Json stages_json(const report::Figures& figures, const RunResult& run) {
  if (!figures.stage_overlap) return nullptr;
  Json ranks = Json::array();
  for (const RankResult& rank : run.ranks) ranks.push_back(listed(rank.stages));
  return {{"ranks", std::move(ranks)}, {"overlap", *figures.stage_overlap}};
}

Json load_json(const Case& c, const RunResult& run) {
  if (c.load == Load::none) return nullptr;
  Json ranks = Json::array();
  for (const RankResult& rank : run.ranks) {
    Json load = listed(rank.load);
    if (rank.load) load["loss_pct"] = or_null(report::work_loss_pct(*rank.load));
    ranks.push_back(std::move(load));
  }
  return ranks;
}

Json repetition_json(const Case& c, const RunResult& run) {
  const report::Figures figures = report::figures(c, run);
  return {{"latency_us", listed(figures.latency_us)},
          {"bytes_per_second", or_null(figures.bytes_per_second)},
          {"messages_per_second", or_null(figures.messages_per_second)},
          {"cpu", listed(figures.cpu)},
          {"stages", stages_json(figures, run)},
          {"load", load_json(c, run)},
          {"iterations", run.iterations},
          {"payload_bytes", run.payload_bytes},
          {"verified", run.verified},
          {"started", run.started},
          {"duration_s", run.elapsed_s}};
}

Json case_json(const CaseResult& result) {
  const Case& c = result.test_case;
  Json json = listed(c);
  json["registration"] = to_string(result.registration);
  json["footprint_bytes"] = path::layout_of(c).bytes();
  json["proof"] = listed(result.proofs);
  json["repetitions"] = Json::array();
  for (const RunResult& run : result.repetitions) json["repetitions"].push_back(repetition_json(c, run));
  return json;
}

// What two cases share when they are compared, but for the size.
Json series_json(const Case& c) {
  return {{"suite", to_string(c.suite)},
          {"op", to_string(c.op)},
          {"memory", to_string(c.memory)},
          {"completion", to_string(c.completion)},
          {"depth", c.depth},
          {"queue_pairs", c.queue_pairs},
          {"direction", to_string(c.direction)},
          {"staging", to_string(c.staging.variant)},
          {"load", to_string(c.load)}};
}

Json ratio_json(const measure::RatioEstimate& ratio) {
  return {{"estimate", ratio.estimate},
          {"low", ratio.interval ? Json(ratio.interval->low) : Json(nullptr)},
          {"high", ratio.interval ? Json(ratio.interval->high) : Json(nullptr)},
          {"repetitions", ratio.pairs}};
}

Json comparison_json(const report::Comparison& comparison) {
  Json points = Json::array();
  for (const auto& compared : comparison.points) {
    Json entry = series_json(compared.point);
    entry["size_bytes"] = compared.point.size_bytes;
    entry["metric"] = spec(compared.metric).name;
    entry["ratios"] = Json::array();
    for (const auto& ratio : compared.ratios) {
      Json one = {{"path", to_string(ratio.pair.path)}, {"reference", to_string(ratio.pair.reference)}};
      one.update(ratio_json(ratio.value));
      entry["ratios"].push_back(std::move(one));
    }
    points.push_back(std::move(entry));
  }
  Json crossovers = Json::array();
  for (const auto& crossover : comparison.crossovers) {
    Json entry = series_json(crossover.series);
    entry["metric"] = spec(crossover.metric).name;
    entry["path"] = to_string(crossover.pair.path);
    entry["reference"] = to_string(crossover.pair.reference);
    entry["from_bytes"] = or_null(crossover.from_bytes);
    crossovers.push_back(std::move(entry));
  }
  return {{"points", points}, {"crossovers", crossovers}};
}

Json skipped_json(const std::vector<SkippedPath>& skipped) {
  Json json = Json::array();
  for (const SkippedPath& path : skipped)
    json.push_back({{"path", to_string(path.path)}, {"reason", path.reason}});
  return json;
}

}  // namespace

nlohmann::ordered_json to_json(const ResultDocument& document) {
  Json cases = Json::array();
  for (const CaseResult& result : document.cases) cases.push_back(case_json(result));

  Json own;
  own["schema"] = schema;
  own["version"] = version;
  own["commit"] = commit;
  own["command"] = document.command;
  own["fabric"] = listed(document.fabric);
  own["functional"] = is_functional(document.fabric.kind);
  own["ranks"] = listed(document.ranks);
  own["cases"] = std::move(cases);
  own["skipped"] = skipped_json(document.skipped);
  if (!document.load_skipped.empty()) own["load_skipped"] = skipped_json(document.load_skipped);
  report::add_local(own, document);
  own["comparison"] = comparison_json(report::compare(report::Points(document)));
  own["complete"] = document.complete;
  own["incomplete_reason"] = or_null(document.incomplete_reason);

  Json json;
  json["context"] = document.context;
  json["benchmarks"] = document.benchmarks;
  json["gdrbench"] = std::move(own);
  return json;
}

}  // namespace gdrbench
