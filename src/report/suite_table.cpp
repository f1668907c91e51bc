#include <algorithm>

#include "gdrbench/report.hpp"
#include "gdrbench/size.hpp"
#include "report/figures.hpp"
#include "report/losses.hpp"
#include "report/table_parts.hpp"
#include "report/text_table.hpp"

namespace gdrbench {
namespace {

using namespace report;

std::string time_cell(std::span<const Figures> repetitions, double LatencySummary::*field) {
  return format_time_us(median_of(repetitions, [field](const Figures& figures) -> std::optional<double> {
    if (!figures.latency_us) return std::nullopt;
    return (*figures.latency_us).*field;
  }));
}

// The extremes are those of all repetitions together: a median of maxima would hide the worst one.
Row latency_cells(std::span<const Figures> repetitions) {
  std::optional<double> min_us, max_us;
  for (const Figures& figures : repetitions) {
    if (!figures.latency_us) continue;
    min_us = std::min(min_us.value_or(figures.latency_us->min), figures.latency_us->min);
    max_us = std::max(max_us.value_or(figures.latency_us->max), figures.latency_us->max);
  }
  return {format_time_us(min_us),
          time_cell(repetitions, &LatencySummary::p50),
          time_cell(repetitions, &LatencySummary::p90),
          time_cell(repetitions, &LatencySummary::p99),
          time_cell(repetitions, &LatencySummary::p99_9),
          format_time_us(max_us)};
}

Row bandwidth_cells(std::span<const Figures> repetitions) {
  const auto rate = median_of(repetitions, [](const Figures& figures) { return figures.bytes_per_second; });
  const auto messages =
      median_of(repetitions, [](const Figures& figures) { return figures.messages_per_second; });
  return {format_rate(rate), format_count(messages)};
}

Row headings(Suite suite) {
  if (times_messages(suite)) return {"min", "p50", "p90", "p99", "p99.9", "max"};
  return {"rate", "Msg/s"};
}

void append(Row& row, Row cells) {
  row.insert(row.end(), std::make_move_iterator(cells.begin()), std::make_move_iterator(cells.end()));
}

std::string block(const ResultDocument& document, Suite suite, std::span<const Case> all) {
  std::vector<Row> rows(1, Row{std::string(to_string(suite)), "", "size"});
  append(rows[0], headings(suite));
  rows[0].emplace_back(spec(cpu_metric(suite)).heading);
  for (const CaseResult& result : document.cases) {
    const Case& c = result.test_case;
    if (c.suite != suite || result.repetitions.empty()) continue;
    const std::vector<Figures> repetitions = figures(result);
    Row row = {std::string(to_string(c.path)), distinction(c, all), format_exact_size(c.size_bytes)};
    append(row, times_messages(suite) ? latency_cells(repetitions) : bandwidth_cells(repetitions));
    row.push_back(metric_cell(repetitions, cpu_metric(suite)));
    rows.push_back(std::move(row));
  }
  if (rows.size() == 1) return "";
  std::vector<Align> alignment(rows[0].size(), Align::right);
  alignment[0] = alignment[1] = Align::left;
  return '\n' + align_rows(rows, alignment);
}

Shown shown_by(std::span<const Case> all) {
  Shown shown;
  for (const Case& c : all) {
    shown.extremes |= times_messages(c.suite);
    shown.cpu |= !spec(c.suite).has_load;
    shown.cpu_pct |= !spec(c.suite).has_load && cpu_metric(c.suite) == Metric::cpu_pct;
    shown.pairs |= c.pairs_at_once > 1;
    shown.losses |= c.load != Load::none;
  }
  return shown;
}

}  // namespace

std::string suite_table(const ResultDocument& document, const TableOptions& options) {
  std::vector<Case> all;
  for (const CaseResult& result : document.cases)
    if (!result.repetitions.empty()) all.push_back(result.test_case);
  std::string text = table_head(document, options);
  for (const SuiteSpec& suite : all_suites)
    text += suite.has_load ? overlap_block(document, suite.suite, all) : block(document, suite.suite, all);
  text += pairs_block(document, all);
  return text + table_foot(document, shown_by(all), options);
}

}  // namespace gdrbench
