#pragma once

#include <optional>
#include <span>
#include <string>

#include "gdrbench/report.hpp"
#include "report/figures.hpp"

/// What a transfer and the GPUs' own work lose to each other.
namespace gdrbench::report {

/// Percent of its speed that the work lost beside the transfer; below 0 when it ran faster. Nothing when it
/// did nothing alone.
std::optional<double> work_loss_pct(const LoadRates& rates);

/// Percent of its rate that the transfer lost beside the work: 100 · (1 − the geometric mean of together ÷
/// alone), over repetitions that ran side by side. Nothing without a pair.
std::optional<double> transfer_loss_pct(std::span<const Figures> alone, std::span<const Figures> together);

/// The block of a suite with loads in its table: a row for each transfer, and beside its rate alone what
/// became of it and of the work with each load. Empty without such cases.
std::string overlap_block(const ResultDocument& document, Suite suite, std::span<const Case> all);

}  // namespace gdrbench::report
