#include "report/overlap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "gdrbench/size.hpp"
#include "measure/summary.hpp"
#include "report/table_parts.hpp"
#include "report/text_table.hpp"
#include "report/units.hpp"

namespace gdrbench::report {
namespace {

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

}  // namespace gdrbench::report
