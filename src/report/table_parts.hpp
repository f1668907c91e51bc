#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gdrbench/report.hpp"
#include "report/figures.hpp"

/// What the tables have in common.
namespace gdrbench::report {

/// Title, fabric with its mark when it gives no performance figures, memory, completion, remote.
std::string table_head(const ResultDocument& document, const TableOptions& options);

/// What a table shows that has to be explained below it.
struct Shown {
  bool extremes = false;  ///< min and max
  bool ratios = false;
  bool no_interval = false;  ///< "[–]" for an interval that says nothing
  bool cpu = false;
  bool cpu_pct = false;
  bool losses = false;  ///< of transfers and of GPU work
  bool pairs = false;   ///< of NIC and GPU, alone and together
};

/// Why the figures of a build without optimisation are none.
std::string unoptimised_text();

/// How the figures are meant that the table shows, skipped paths with their reasons, whether the run is
/// incomplete, and last the number of repetitions and the result file.
std::string table_foot(const ResultDocument& document, const Shown& shown, const TableOptions& options);

/// What tells the case from the others of its suite besides path and size ("write reverse"): the op always,
/// the rest only where the cases differ in it.
std::string distinction(const Case& c, std::span<const Case> all);

/// The figure in the metric's unit: "28.5 µs".
std::string unit_cell(std::optional<double> figure, Metric metric);
/// The median; by rank where the metric is a sum over ranks, "98.7 + 99.1". "–" where nothing is known.
std::string metric_cell(std::span<const Figures> repetitions, Metric metric);
/// "12.5"; "–" for nothing.
std::string percent_cell(std::optional<double> percent);

}  // namespace gdrbench::report
