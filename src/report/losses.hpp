#pragma once

#include <optional>
#include <span>
#include <string>

#include "gdrbench/report.hpp"
#include "report/figures.hpp"

/// What transfers lose to what goes on beside them: the GPUs' own work, or transfers of other pairs of NIC
/// and GPU.
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

/// Whether any case ran on several pairs of NIC and GPU at once.
bool has_pairs_at_once(std::span<const Case> all);

/// What pairs of NIC and GPU lose to each other, a block for each suite: for each transfer and size every
/// pair alone and with the others, and of rates the sum of them together against the sum of them alone. Empty
/// where no case ran on several pairs at once.
std::string pairs_block(const ResultDocument& document, std::span<const Case> all);

}  // namespace gdrbench::report
