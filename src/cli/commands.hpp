#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace gdrbench::cli {

/// What the command line led to: called once parsing is over.
using Action = std::function<int()>;

void add_serve(CLI::App& app, Action& chosen);

/// compare, latency and bandwidth. `command_line` is recorded in the result file; `benchmark_flags` are the
/// --benchmark_* arguments, which CLI11 does not see.
void add_measure_commands(CLI::App& app, Action& chosen, const std::string& command_line,
                          const std::vector<std::string>& benchmark_flags);

}  // namespace gdrbench::cli
