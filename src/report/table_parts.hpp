#pragma once

#include <span>
#include <string>
#include <vector>

#include "gdrbench/report.hpp"
#include "report/figures.hpp"

/// What the tables have in common.
namespace gdrbench::report {

/// Title, fabric with its mark when it gives no performance figures, memory, completion, peer.
std::string table_head(const ResultDocument& document, const TableOptions& options);

/// What a table shows that has to be explained below it.
struct Shown {
  bool extremes = false;  ///< min and max
  bool ratios = false;
  bool no_interval = false;  ///< "[–]" for an interval that says nothing
  bool cpu = false;
  bool cpu_pct = false;
  bool losses = false;  ///< of transfers and of GPU work
};

/// How the figures are meant that the table shows, skipped paths with their reasons, whether the run is
/// incomplete, and last the number of repetitions and the result file.
std::string table_foot(const ResultDocument& document, const Shown& shown, const TableOptions& options);

/// What tells the case from the others of its suite besides path and size ("write reverse"): the op always,
/// the rest only where the cases differ in it.
std::string distinction(const Case& c, std::span<const Case> all);

/// "98.7 + 99.1": initiator and responder, medians; "–" when neither is known.
std::string cpu_cell(std::span<const Figures> repetitions, Suite suite);
/// What cpu_cell shows: "CPU %" of a core for latency, "CPU s/GB" for bandwidth.
std::string cpu_heading(Suite suite);

}  // namespace gdrbench::report
