#include <fmt/format.h>

#include <algorithm>

#include "base/error_text.hpp"
#include "gdrbench/report.hpp"
#include "gdrbench/size.hpp"
#include "report/table_parts.hpp"
#include "report/text_table.hpp"

namespace gdrbench {
namespace {

using namespace report;
using Labels = std::vector<std::pair<std::string, std::string>>;

// Of the repetitions that have the figure; nothing when none has.
template <class Figure>
std::optional<double> median(const LocalResult& result, Figure figure) {
  std::vector<double> values;
  for (const LocalRepetition& repetition : result.repetitions)
    if (const std::optional<double> value = figure(repetition)) values.push_back(*value);
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::optional<double> host_us(const LocalRepetition& repetition) {
  return repetition.time_us;
}
std::optional<double> device_us(const LocalRepetition& repetition) {
  return repetition.device_time_us;
}

std::string values_of(const Labels& labels) {
  std::string text;
  for (const auto& label : labels) text += (text.empty() ? "" : " ") + label.second;
  return text;
}

struct Column {
  std::string what;
  bool has_device_time = false;
  bool moves_data = false;
};

std::vector<Column> columns_of(const ResultDocument& document, const std::string& suite) {
  std::vector<Column> columns;
  for (const LocalResult& result : document.local) {
    if (result.suite != suite) continue;
    auto found = std::find_if(columns.begin(), columns.end(),
                              [&](const Column& column) { return column.what == result.what; });
    if (found == columns.end())
      found = columns.insert(columns.end(), {result.what, false, result.moves_data});
    if (median(result, device_us)) found->has_device_time = true;
  }
  return columns;
}

void add_cells(Row& row, const Column& column, const LocalResult* result) {
  const std::optional<double> us = result != nullptr ? median(*result, host_us) : std::nullopt;
  row.push_back(format_time_us(us));
  if (column.has_device_time)
    row.push_back(format_time_us(result != nullptr ? median(*result, device_us) : std::nullopt));
  if (column.moves_data)
    row.push_back(format_rate(
        us && *us > 0 ? std::optional(static_cast<double>(result->size_bytes) / *us * 1e6) : std::nullopt));
}

const LocalResult* find(const ResultDocument& document, const LocalResult& like, const std::string& what) {
  for (const LocalResult& result : document.local)
    if (result.suite == like.suite && result.what == what && result.labels == like.labels &&
        result.size_bytes == like.size_bytes)
      return &result;
  return nullptr;
}

std::string block(const ResultDocument& document, const std::string& suite) {
  const std::vector<Column> columns = columns_of(document, suite);
  Row head = {suite, "size"};
  for (const Column& column : columns) {
    head.push_back(column.what);
    if (column.has_device_time) head.emplace_back("CUDA events");
    if (column.moves_data) head.emplace_back("rate");
  }
  std::vector<Row> rows = {head};
  std::vector<const LocalResult*> shown;
  for (const LocalResult& result : document.local) {
    const bool known = std::any_of(shown.begin(), shown.end(), [&](const LocalResult* other) {
      return other->labels == result.labels && other->size_bytes == result.size_bytes;
    });
    if (result.suite != suite || known) continue;
    shown.push_back(&result);
    Row row = {values_of(result.labels), format_exact_size(result.size_bytes)};
    for (const Column& column : columns) add_cells(row, column, find(document, result, column.what));
    rows.push_back(std::move(row));
  }
  std::vector<Align> alignment(head.size(), Align::right);
  alignment[0] = Align::left;
  return '\n' + align_rows(rows, alignment);
}

}  // namespace

std::string local_blocks(const ResultDocument& document, std::size_t width) {
  std::string text;
  std::vector<std::string> suites;
  for (const LocalResult& result : document.local)
    if (std::find(suites.begin(), suites.end(), result.suite) == suites.end()) suites.push_back(result.suite);
  for (const std::string& suite : suites) text += block(document, suite);
  if (!document.local_crossovers.empty()) text += '\n';
  for (const LocalCrossover& one : document.local_crossovers)
    text +=
        fmt::format("{}, {}: {}\n", one.what, values_of(one.labels),
                    one.from_bytes ? "from " + format_exact_size(*one.from_bytes) : std::string("nowhere"));
  // What shares a reason shares a paragraph.
  std::vector<LocalSkipped> skipped;
  for (const LocalSkipped& one : document.local_skipped) {
    const auto same = std::find_if(skipped.begin(), skipped.end(),
                                   [&](const LocalSkipped& known) { return known.reason == one.reason; });
    if (same == skipped.end())
      skipped.push_back(one);
    else
      same->what += ", " + one.what;
  }
  for (const LocalSkipped& one : skipped)
    text += wrap(one.what + " skipped: ", words(one.reason), {.indent = 2, .width = width});
  return text;
}

std::string local_table(const ResultDocument& document, const TableOptions& options) {
  std::string text = options.title;
  if (document.fabric.device)
    text += fmt::format("      fabric {} {}{}", to_string(document.fabric.kind), *document.fabric.device,
                        is_functional(document.fabric.kind) ? " (functional, not a performance result)" : "");
  text += '\n' + local_blocks(document, options.width) + '\n';
  if (!options.note.empty()) text += wrap("", words(options.note), {.width = options.width});
  if (!options.optimised)
    text += wrap("note: ", words(unoptimised_text()), {.indent = 6, .width = options.width});
  if (!document.complete)
    text += wrap("incomplete: ", words(document.incomplete_reason), {.indent = 12, .width = options.width});
  std::size_t max_count = 0;
  for (const LocalResult& result : document.local) max_count = std::max(max_count, result.repetitions.size());
  text += fmt::format("Medians of {} repetition{}", max_count, max_count == 1 ? "" : "s");
  if (!options.result_file.empty()) text += fmt::format(" · result file {}", printable(options.result_file));
  return text + '\n';
}

}  // namespace gdrbench
