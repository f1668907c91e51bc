#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "topology/root.hpp"

namespace gdrbench::doctor {

/// Values by "mlx5_0/1/out_of_sequence": device, port, counter.
using Counters = std::map<std::string, std::uint64_t>;

/// What the ports' `hw_counters` and `counters` hold now. Names that are settings are left out, and so is
/// what is no number.
Counters read_counters(const topology::Root& root);

}  // namespace gdrbench::doctor
