#include <fmt/format.h>

#include <algorithm>

#include "gdrbench/report.hpp"
#include "gdrbench/size.hpp"
#include "report/comparison.hpp"
#include "report/losses.hpp"
#include "report/table_parts.hpp"
#include "report/text_table.hpp"

namespace gdrbench {
namespace {

using namespace report;

// Of few repetitions that differ, the interval may span many orders of magnitude.
bool says_nothing(const measure::RatioEstimate& ratio) {
  constexpr double factor = 100;
  return ratio.interval &&
         !(ratio.interval->high <= factor * ratio.estimate && ratio.interval->low * factor >= ratio.estimate);
}

std::string ratio_cell(const std::optional<measure::RatioEstimate>& ratio) {
  if (!ratio) return "–";
  if (!ratio->interval) return format_ratio(ratio->estimate);
  if (says_nothing(*ratio)) return format_ratio(ratio->estimate) + " [–]";
  return fmt::format("{} [{}, {}]", format_ratio(ratio->estimate), format_ratio(ratio->interval->low),
                     format_ratio(ratio->interval->high));
}

// The most direct path beside its nearest relative that ran.
std::optional<PathPair> shown_pair(const Points& points) {
  for (const PathPair& pair : compared_pairs())
    if (points.ran(pair.path) && points.ran(pair.reference)) return pair;
  return std::nullopt;
}

// "gdr beats rdma: latency send p50 from 8 B · …". Only for performance results, and where a series has sizes
// to choose from.
std::string crossover_text(const Points& points, const PathPair& pair, std::size_t width) {
  std::vector<std::string> pieces;
  for (const Crossover& crossover : compare(points).crossovers) {
    if (crossover.pair != pair) continue;
    if (crossover.sizes < 2) continue;
    const std::string from =
        crossover.from_bytes ? "from " + format_exact_size(*crossover.from_bytes) : std::string("nowhere");
    pieces.push_back(fmt::format("{} {} {} {}", to_string(crossover.series.suite),
                                 distinction(crossover.series, points.all()), spec(crossover.metric).heading,
                                 from));
  }
  if (pieces.empty()) return "";
  const std::string lead = fmt::format("{} beats {}: ", to_string(pair.path), to_string(pair.reference));
  return '\n' + wrap(lead, pieces, {.separator = " · ", .indent = display_width(lead), .width = width});
}

}  // namespace

std::string comparison_table(const ResultDocument& document, const TableOptions& options) {
  const Points points(document);
  const auto pair = shown_pair(points);

  Row head = {"", ""};
  std::vector<Align> alignment = {Align::left, Align::left};
  std::vector<Path> columns;
  for (const auto& [path, name] : EnumNames<Path>::names) {
    if (!points.ran(path)) continue;
    columns.push_back(path);
    head.emplace_back(name);
    alignment.push_back(Align::right);
  }
  if (pair) {
    head.push_back(fmt::format("{} ÷ {} [95 %]", to_string(pair->path), to_string(pair->reference)));
    alignment.push_back(Align::left);
  }

  std::vector<Row> rows = {head};
  Shown shown{.ratios = pair.has_value(), .cpu = true};
  for (const Case& point : points.all()) {
    std::string label = fmt::format("{} {} {}", to_string(point.suite), format_exact_size(point.size_bytes),
                                    distinction(point, points.all()));
    shown.cpu_pct |= cpu_metric(point.suite) == Metric::cpu_pct;
    shown.pairs |= point.pairs_at_once > 1;
    for (const Metric metric : spec(point.suite).metrics) {
      Row row = {std::exchange(label, ""), std::string(spec(metric).heading)};
      for (const Path path : columns) row.push_back(metric_cell(points.at(point, path), metric));
      if (pair) {
        const auto ratio =
            measure::paired_ratio(values_of(points.at(point, pair->path), figure_of(metric)),
                                  values_of(points.at(point, pair->reference), figure_of(metric)));
        shown.no_interval |= ratio && says_nothing(*ratio);
        row.push_back(ratio_cell(ratio));
      }
      rows.push_back(std::move(row));
    }
  }
  std::string text = table_head(document, options) + '\n';
  if (rows.size() > 1) text += align_rows(rows, alignment);
  if (pair && !is_functional(document.fabric.kind)) text += crossover_text(points, *pair, options.width);
  text += pairs_block(document, points.all());
  return text + table_foot(document, shown, options);
}

}  // namespace gdrbench
