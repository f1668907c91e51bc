#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "cli/commands.hpp"

/// Flags that several commands have.
namespace gdrbench::cli {

/// Call it when all flags are there: an empty value of any is bad usage. CLI11 would take it for 0 or for a
/// flag that was not given.
void refuse_empty_values(CLI::App& command);

/// --out, --key-file and whatever else names a file.
CLI::Option* add_file_flag(CLI::App& command, const char* flag, std::string& path, const char* help);

/// For commands that measure nothing. Throws UsageError that begins with the flag.
void refuse_benchmark_flags(const Invocation& invocation);

/// --time-budget: seconds for the whole run, more than 0 and up to 1e6.
CLI::Option* add_time_budget(CLI::App& command, double& seconds);

/// What the commands that measure within one node share.
struct LocalFlags {
  int gpu = 0;
  std::optional<std::string> sizes;
  std::string fabric = "auto", out;
  double time_budget_s = 60;
};
void add_local_flags(CLI::App& command, LocalFlags& flags, const char* gpu_help, const char* sizes_help);

}  // namespace gdrbench::cli
