#include <string>

#include "gdrbench/report.hpp"
#include "gdrbench/version.hpp"
#include "path/layout.hpp"
#include "report/comparison.hpp"
#include "report/figures.hpp"
#include "report/local_json.hpp"
#include "report/overlap.hpp"

namespace gdrbench {
namespace {

using Json = nlohmann::ordered_json;

constexpr int schema = 1;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json fabric_json(const FabricDescription& fabric) {
  return {{"kind", to_string(fabric.kind)},
          {"device", or_null(fabric.device)},
          {"link_layer", or_null(fabric.link_layer)},
          {"active_mtu", or_null(fabric.active_mtu)},
          {"gid_index", or_null(fabric.gid_index)},
          {"link_bytes_per_second", or_null(fabric.link_bytes_per_second)}};
}

Json latency_json(const LatencySummary& us) {
  return {{"min", us.min}, {"mean", us.mean},   {"p50", us.p50},       {"p90", us.p90},
          {"p99", us.p99}, {"p99_9", us.p99_9}, {"p99_99", us.p99_99}, {"max", us.max}};
}

Json cpu_json(const report::CpuFigures& cpu) {
  return {{"user_pct", or_null(cpu.user_pct)},
          {"system_pct", or_null(cpu.system_pct)},
          {"thread_pct", or_null(cpu.thread_pct)},
          {"irq_pct", or_null(cpu.irq_pct)},
          {"softirq_pct", or_null(cpu.softirq_pct)},
          {"seconds_per_gb", or_null(cpu.seconds_per_gb)},
          {"irq_seconds_per_gb", or_null(cpu.irq_seconds_per_gb)}};
}

Json stages_json(const std::optional<StageTimes>& stages) {
  if (!stages) return nullptr;
  return {{"gpu_to_host_s", stages->gpu_to_host_s},
          {"wire_s", stages->wire_s},
          {"host_to_gpu_s", stages->host_to_gpu_s}};
}

Json stages_json(const report::Figures& figures, const RunResult& run) {
  if (!figures.stage_overlap) return nullptr;
  return {{"initiator", stages_json(run.initiator_stages)},
          {"responder", stages_json(run.responder_stages)},
          {"overlap", *figures.stage_overlap}};
}

Json load_json(const Case& c, const std::optional<LoadRates>& rates) {
  if (!rates) return nullptr;
  return {{"kind", to_string(c.load)},
          {"alone_units_per_second", rates->alone_units_per_second},
          {"together_units_per_second", rates->together_units_per_second},
          {"loss_pct", or_null(report::work_loss_pct(*rates))}};
}

Json repetition_json(const Case& c, const RunResult& run) {
  const report::Figures figures = report::figures(c, run);
  return {{"latency_us", figures.latency_us ? latency_json(*figures.latency_us) : Json(nullptr)},
          {"bytes_per_second", or_null(figures.bytes_per_second)},
          {"messages_per_second", or_null(figures.messages_per_second)},
          {"cpu", {{"initiator", cpu_json(figures.initiator)}, {"responder", cpu_json(figures.responder)}}},
          {"stages", stages_json(figures, run)},
          {"load", c.load == Load::none ? Json(nullptr)
                                        : Json{{"initiator", load_json(c, run.initiator_load)},
                                               {"responder", load_json(c, run.responder_load)}}},
          {"iterations", run.iterations},
          {"payload_bytes", run.payload_bytes},
          {"verified", run.verified},
          {"started", run.started},
          {"duration_s", run.elapsed_s}};
}

Json case_json(const CaseResult& result) {
  const Case& c = result.test_case;
  Json repetitions = Json::array();
  for (const RunResult& run : result.repetitions) repetitions.push_back(repetition_json(c, run));
  Json staging = nullptr;
  if (is_staged(c.path))
    staging = {{"variant", to_string(c.staging.variant)},
               {"engine", to_string(c.staging.engine)},
               {"chunk_bytes", c.staging.chunk_bytes},
               {"slots", c.staging.slots},
               {"streams", c.staging.streams}};
  return {{"suite", to_string(c.suite)},
          {"path", to_string(c.path)},
          {"op", to_string(c.op)},
          {"memory", to_string(c.memory)},
          {"registration", to_string(result.registration)},
          {"completion", to_string(c.completion)},
          {"size_bytes", c.size_bytes},
          {"depth", times_messages(c.suite) ? 1 : c.depth},
          {"queue_pairs", c.queue_pairs},
          {"direction", to_string(c.direction)},
          {"staging", staging},
          {"load", to_string(c.load)},
          {"footprint_bytes", path::layout_of(c).bytes()},
          {"proof", result.proof},
          {"repetitions", repetitions}};
}

// What two cases share when they are compared, but for the size.
Json series_json(const Case& c) {
  return {{"suite", to_string(c.suite)},
          {"op", to_string(c.op)},
          {"memory", to_string(c.memory)},
          {"completion", to_string(c.completion)},
          {"depth", times_messages(c.suite) ? 1 : c.depth},
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

std::string pair_name(const report::PathPair& pair) {
  return std::string(to_string(pair.path)) + "/" + std::string(to_string(pair.reference));
}

Json comparison_json(const report::Comparison& comparison) {
  Json points = Json::array();
  for (const auto& compared : comparison.points) {
    Json entry = series_json(compared.point);
    entry["size_bytes"] = compared.point.size_bytes;
    entry["metric"] = compared.metric.name;
    entry["ratios"] = Json::object();
    for (const auto& ratio : compared.ratios)
      entry["ratios"][pair_name(ratio.pair)] = ratio_json(ratio.value);
    points.push_back(std::move(entry));
  }
  Json crossovers = Json::array();
  for (const auto& crossover : comparison.crossovers) {
    Json entry = series_json(crossover.series);
    entry["metric"] = crossover.metric.name;
    entry["path"] = to_string(crossover.pair.path);
    entry["beats"] = to_string(crossover.pair.reference);
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
  own["fabric"] = fabric_json(document.fabric);
  own["functional"] = is_functional(document.fabric.kind);
  own["ends"] = {{"initiator", document.initiator}, {"responder", document.responder}};
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
