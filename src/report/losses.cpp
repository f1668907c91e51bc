#include "report/losses.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "gdrbench/size.hpp"
#include "measure/summary.hpp"
#include "report/comparison.hpp"
#include "report/table_parts.hpp"
#include "report/text_table.hpp"

namespace gdrbench::report {
namespace {

// ---- GPU work ----

const FigureOf rate = [](const Figures& figures) { return figures.bytes_per_second; };

Case without_load(Case c) {
  c.load = Load::none;
  return c;
}

const CaseResult* find(const ResultDocument& document, const Case& wanted) {
  for (const CaseResult& result : document.cases)
    if (result.test_case == wanted && !result.repetitions.empty()) return &result;
  return nullptr;
}

std::vector<Load> loads_in(const ResultDocument& document) {
  std::vector<Load> loads;
  for (const auto& named : EnumNames<Load>::names)
    if (named.first != Load::none &&
        std::any_of(document.cases.begin(), document.cases.end(), [&](const auto& result) {
          return result.test_case.load == named.first && !result.repetitions.empty();
        }))
      loads.push_back(named.first);
  return loads;
}

std::optional<double> median_work_loss_pct(const CaseResult& result, std::size_t rank) {
  std::vector<double> losses;
  for (const RunResult& run : result.repetitions)
    if (rank < run.ranks.size() && run.ranks[rank].load)
      if (const auto loss = work_loss_pct(*run.ranks[rank].load)) losses.push_back(*loss);
  if (losses.empty()) return std::nullopt;
  return measure::median(std::move(losses));
}

void append_load(Row& row, const ResultDocument& document, const Case& alone, Load load) {
  Case wanted = alone;
  wanted.load = load;
  const CaseResult* const together = find(document, wanted);
  if (together == nullptr) {
    row.insert(row.end(), {"–", "–", "–"});
    return;
  }
  const CaseResult* const reference = find(document, alone);
  const std::vector<Figures> beside = figures(*together);
  row.push_back(format_rate(median_of(beside, rate)));
  row.push_back(reference == nullptr ? "–" : percent_cell(transfer_loss_pct(figures(*reference), beside)));
  std::string losses;
  for (std::size_t rank = 0; rank < spec(alone.suite).roles.size(); ++rank)
    losses += (rank == 0 ? "" : " + ") + percent_cell(median_work_loss_pct(*together, rank));
  row.push_back(std::move(losses));
}

// ---- other pairs ----

// The metric of each repetition, of one pair or of all.
using Values = std::vector<double>;

struct PairValues {
  std::string pair;
  Values alone, together;
};

// All cases that differ by nothing but the pair and whether it worked alone.
struct PairGroup {
  Case like;
  std::uint32_t at_once = 1;
  std::vector<PairValues> pairs;
};

Case without_pair(const Case& c) {
  Case like = as_seen_by(c, c.path);
  like.pair.clear();
  like.pairs_at_once = 1;
  return like;
}

Metric first_metric(Suite suite) {
  return spec(suite).metrics.front();
}

PairValues& values_of_pair(PairGroup& group, const std::string& pair) {
  const auto found = std::find_if(group.pairs.begin(), group.pairs.end(),
                                  [&](const PairValues& known) { return known.pair == pair; });
  if (found != group.pairs.end()) return *found;
  return group.pairs.emplace_back(PairValues{.pair = pair, .alone = {}, .together = {}});
}

std::vector<PairGroup> pair_groups(const ResultDocument& document, Suite suite) {
  std::vector<PairGroup> groups;
  for (const CaseResult& result : document.cases) {
    const Case& c = result.test_case;
    if (c.suite != suite || c.pair.empty() || result.repetitions.empty()) continue;
    const Case like = without_pair(c);
    auto group =
        std::find_if(groups.begin(), groups.end(), [&](const auto& known) { return known.like == like; });
    if (group == groups.end()) group = groups.insert(groups.end(), PairGroup{.like = like, .pairs = {}});
    group->at_once = std::max(group->at_once, c.pairs_at_once);
    PairValues& pair = values_of_pair(*group, c.pair);
    (c.pairs_at_once > 1 ? pair.together : pair.alone) =
        values_of(figures(result), figure_of(first_metric(suite)));
  }
  std::erase_if(groups, [](const PairGroup& group) { return group.at_once < 2; });
  return groups;
}

// Over the pairs, repetition by repetition; nothing unless every pair has been measured.
Values sum_of(const std::vector<PairValues>& pairs, Values PairValues::*values) {
  Values sums = pairs.front().*values;
  for (auto pair = pairs.begin() + 1; pair != pairs.end(); ++pair) {
    const Values& others = (*pair).*values;
    sums.resize(std::min(sums.size(), others.size()));
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += others[i];
  }
  return sums;
}

// Percent that is worse together than alone, of repetitions that ran in one block.
std::string loss_cell(const PairValues& values, Metric metric) {
  const auto ratio = measure::paired_ratio(values.together, values.alone);
  if (!ratio) return "–";
  return percent_cell(100 * (spec(metric).larger_is_better ? 1 - ratio->estimate : ratio->estimate - 1));
}

std::string median_cell(Values values, Metric metric) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  return unit_cell(values.empty() ? std::nullopt : std::optional(measure::median(std::move(values))), metric);
}

Row pair_row(const PairValues& values, Metric metric) {
  return {values.pair, median_cell(values.alone, metric), median_cell(values.together, metric),
          loss_cell(values, metric)};
}

void append_group(std::vector<Row>& rows, const PairGroup& group, std::span<const Case> all) {
  const Metric metric = first_metric(group.like.suite);
  std::vector<PairValues> shown = group.pairs;
  if (spec(metric).larger_is_better)
    shown.push_back({.pair = fmt::format("sum of {}", group.pairs.size()),
                     .alone = sum_of(group.pairs, &PairValues::alone),
                     .together = sum_of(group.pairs, &PairValues::together)});
  bool is_first = true;
  for (const PairValues& values : shown) {
    Row row = is_first ? Row{std::string(to_string(group.like.path)), distinction(group.like, all),
                             format_exact_size(group.like.size_bytes)}
                       : Row{"", "", ""};
    is_first = false;
    for (std::string& cell : pair_row(values, metric)) row.push_back(std::move(cell));
    rows.push_back(std::move(row));
  }
}

}  // namespace

std::optional<double> work_loss_pct(const LoadRates& rates) {
  if (!(rates.alone_units_per_second > 0)) return std::nullopt;
  return 100 * (1 - rates.together_units_per_second / rates.alone_units_per_second);
}

std::optional<double> transfer_loss_pct(std::span<const Figures> alone, std::span<const Figures> together) {
  const auto ratio = measure::paired_ratio(values_of(together, rate), values_of(alone, rate));
  if (!ratio) return std::nullopt;
  return 100 * (1 - ratio->estimate);
}

std::string overlap_block(const ResultDocument& document, Suite suite, std::span<const Case> all) {
  const std::vector<Load> loads = loads_in(document);
  std::vector<Row> rows(1, Row{std::string(to_string(suite)), "", "size", "rate alone"});
  for (const Load load : loads)
    rows[0].insert(rows[0].end(), {fmt::format("+ {}", to_string(load)), "loss %", "GPU work loss %"});

  std::vector<Case> shown;
  for (const CaseResult& result : document.cases) {
    const Case alone = without_load(result.test_case);
    if (alone.suite != suite || result.repetitions.empty()) continue;
    if (std::find(shown.begin(), shown.end(), alone) != shown.end()) continue;
    shown.push_back(alone);
    const CaseResult* const reference = find(document, alone);
    Row row = {std::string(to_string(alone.path)), distinction(alone, all),
               format_exact_size(alone.size_bytes),
               reference == nullptr ? "–" : format_rate(median_of(figures(*reference), rate))};
    for (const Load load : loads) append_load(row, document, alone, load);
    rows.push_back(std::move(row));
  }
  if (shown.empty()) return "";
  std::vector<Align> alignment(rows[0].size(), Align::right);
  alignment[0] = alignment[1] = Align::left;
  return '\n' + align_rows(rows, alignment);
}

bool has_pairs_at_once(std::span<const Case> all) {
  return std::any_of(all.begin(), all.end(), [](const Case& c) { return c.pairs_at_once > 1; });
}

std::string pairs_block(const ResultDocument& document, std::span<const Case> all) {
  // Their settings tell the transfers apart, not the pairs, which have a column.
  std::vector<Case> like;
  for (const Case& c : all) like.push_back(without_pair(c));
  std::string text;
  for (const SuiteSpec& suite : all_suites) {
    const std::string_view heading = spec(suite.metrics.front()).heading;
    std::vector<Row> rows = {{std::string(suite.name), "", "size", "pair", fmt::format("{} alone", heading),
                              "together", "loss %"}};
    for (const PairGroup& group : pair_groups(document, suite.suite)) append_group(rows, group, like);
    if (rows.size() == 1) continue;
    text += '\n' + align_rows(rows, std::vector{Align::left, Align::left, Align::right, Align::left,
                                                Align::right, Align::right, Align::right});
  }
  return text;
}

}  // namespace gdrbench::report
