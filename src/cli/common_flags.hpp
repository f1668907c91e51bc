#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

/// Flags that several commands have.
namespace gdrbench::cli {

/// For CLI11's check(): refuses an empty text, as an unset variable of a shell gives.
std::string names_something(const std::string& text);

/// --out, and any other flag that names a file to be written; an empty name is refused.
CLI::Option* add_file_flag(CLI::App& command, const char* flag, std::string& path, const char* help);

/// --time-budget: seconds for the whole run, more than 0.
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
