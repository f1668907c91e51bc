#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace gdrbench::cli {

/// What the command line led to: called once parsing is over.
using Action = std::function<int()>;

/// The program's command line.
struct Invocation {
  char** argv;                               ///< as main() got it
  std::string text;                          ///< recorded in the result file
  std::vector<std::string> benchmark_flags;  ///< the --benchmark_* arguments, which CLI11 does not see
};

void add_serve(CLI::App& app, Action& chosen, const Invocation& invocation);

/// compare, and one for each suite.
void add_measure_commands(CLI::App& app, Action& chosen, const Invocation& invocation);

/// Within this node, without a server.
void add_p2p(CLI::App& app, Action& chosen, const Invocation& invocation);
void add_topology(CLI::App& app, Action& chosen, const Invocation& invocation);
void add_registration(CLI::App& app, Action& chosen, const Invocation& invocation);
void add_doctor(CLI::App& app, Action& chosen, const Invocation& invocation);
void add_schema(CLI::App& app, Action& chosen);

}  // namespace gdrbench::cli
