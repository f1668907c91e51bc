#pragma once

#include <span>
#include <string>

#include "gdrbench/report.hpp"

namespace gdrbench::report {

/// Whether any case ran on several pairs of NIC and GPU at once.
bool has_pairs_at_once(std::span<const Case> all);

/// What pairs of NIC and GPU lose to each other, a block for each suite: for each transfer and size every
/// pair alone and with the others, and of rates the sum of them together against the sum of them alone. Empty
/// where no case ran on several pairs at once.
std::string pairs_block(const ResultDocument& document, std::span<const Case> all);

}  // namespace gdrbench::report
