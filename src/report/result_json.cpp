#include <string>

#include "gdrbench/report.hpp"
#include "gdrbench/version.hpp"
#include "path/layout.hpp"
#include "report/comparison.hpp"
#include "report/losses.hpp"
#include "report/result_fields.hpp"

namespace gdrbench {
namespace {

using namespace report;

BuildRecord build_record() {
  BuildRecord build{.build_type = build_info.build_type,
                    .compiler = build_info.compiler,
                    .flags = build_info.flags,
                    .optimised = build_info.optimised,
                    .libraries = {}};
  for (const LibraryVersion& library : build_info.libraries)
    build.libraries.push_back({library.name, library.version});
  return build;
}

std::optional<StagesRecord> stages_record(const Figures& figures, const RunResult& run) {
  if (!figures.stage_overlap) return std::nullopt;
  StagesRecord stages{.ranks = {}, .overlap = *figures.stage_overlap};
  for (const RankResult& rank : run.ranks) stages.ranks.push_back(rank.stages);
  return stages;
}

std::optional<LoadRecord> load_record(const std::optional<LoadRates>& rates) {
  if (!rates) return std::nullopt;
  return LoadRecord{*rates, work_loss_pct(*rates)};
}

RepetitionRecord repetition_record(const Case& c, const RunResult& run) {
  Figures figures = report::figures(c, run);
  RepetitionRecord repetition{.latency_us = figures.latency_us,
                              .bytes_per_second = figures.bytes_per_second,
                              .messages_per_second = figures.messages_per_second,
                              .cpu = std::move(figures.cpu),
                              .stages = stages_record(figures, run),
                              .load = std::nullopt,
                              .iterations = run.iterations,
                              .payload_bytes = run.payload_bytes,
                              .messages_lost = messages_lost(run),
                              .verified = run.verified,
                              .started = run.started,
                              .duration_s = run.elapsed_s};
  if (c.load == Load::none) return repetition;
  repetition.load.emplace();
  for (const RankResult& rank : run.ranks) repetition.load->push_back(load_record(rank.load));
  return repetition;
}

CaseRecord case_record(const CaseResult& result) {
  CaseRecord record{result.test_case, result.registration, result.proofs, {}};
  record.footprint_bytes = path::layout_of(result.test_case).bytes();
  for (const RunResult& run : result.repetitions)
    record.repetitions.push_back(repetition_record(result.test_case, run));
  return record;
}

SeriesRecord series_record(const Case& c) {
  return {.suite = c.suite,
          .op = c.op,
          .memory = c.memory,
          .completion = c.completion,
          .depth = c.depth,
          .queue_pairs = c.queue_pairs,
          .direction = c.direction,
          .staging = c.staging.variant,
          .load = c.load,
          .pair = c.pair,
          .pairs_at_once = c.pairs_at_once};
}

RatioRecord ratio_record(const Ratio& ratio) {
  RatioRecord record{.path = ratio.pair.path,
                     .reference = ratio.pair.reference,
                     .estimate = ratio.value.estimate,
                     .low = std::nullopt,
                     .high = std::nullopt,
                     .repetitions = ratio.value.pairs};
  if (ratio.value.interval) {
    record.low = ratio.value.interval->low;
    record.high = ratio.value.interval->high;
  }
  return record;
}

ComparisonRecord comparison_record(const ResultDocument& document) {
  ComparisonRecord record;
  const Comparison comparison = compare(Points(document));
  for (const PointComparison& compared : comparison.points) {
    PointRecord point{series_record(compared.point), compared.point.size_bytes, compared.metric, {}};
    for (const Ratio& ratio : compared.ratios) point.ratios.push_back(ratio_record(ratio));
    record.points.push_back(std::move(point));
  }
  for (const Crossover& crossover : comparison.crossovers)
    record.crossovers.push_back({series_record(crossover.series), crossover.metric, crossover.pair.path,
                                 crossover.pair.reference, crossover.from_bytes});
  return record;
}

LocalRecord local_record(const LocalResult& result) {
  LocalRecord record{.suite = result.suite,
                     .what = result.what,
                     .labels = result.labels,
                     .size_bytes = result.size_bytes,
                     .repetitions = {}};
  for (const LocalRepetition& one : result.repetitions) {
    record.repetitions.push_back({one, std::nullopt});
    if (result.moves_data && one.time_us > 0)
      record.repetitions.back().bytes_per_second = static_cast<double>(result.size_bytes) / one.time_us * 1e6;
  }
  return record;
}

OptionalRecord optional_record(const ResultDocument& document) {
  OptionalRecord record;
  if (!document.load_skipped.empty()) record.load_skipped = document.load_skipped;
  if (document.local.empty() && document.local_skipped.empty()) return record;
  record.local.emplace();
  for (const LocalResult& result : document.local) record.local->push_back(local_record(result));
  record.local_skipped = document.local_skipped;
  record.local_crossovers = document.local_crossovers;
  return record;
}

FileRecord file_record(const ResultDocument& document) {
  FileRecord file;
  file.version = version;
  file.commit = commit;
  file.build = build_record();
  file.command = document.command;
  file.fabric = document.fabric;
  file.functional = is_functional(document.fabric.kind);
  file.ranks = document.ranks;
  for (const CaseResult& result : document.cases) file.cases.push_back(case_record(result));
  file.skipped = document.skipped;
  file.comparison = comparison_record(document);
  file.complete = document.complete;
  if (!document.incomplete_reason.empty()) file.incomplete_reason = document.incomplete_reason;
  return file;
}

}  // namespace

nlohmann::ordered_json to_json(const ResultDocument& document) {
  using Json = nlohmann::ordered_json;
  Json own = value_to_json<Json>(file_record(document));
  own.update(value_to_json<Json>(optional_record(document)));
  Json file;
  file["context"] = document.context;
  file["benchmarks"] = document.benchmarks;
  file["gdrbench"] = std::move(own);
  return file;
}

}  // namespace gdrbench
