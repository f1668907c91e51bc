#include "cli/common_flags.hpp"

#include <fmt/format.h>

#include "cli/fabric.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::cli {

void refuse_empty_values(CLI::App& command) {
  const auto holds_something = [](std::string& text) {
    return text.empty() ? std::string("the value is empty, as that of an unset variable is") : std::string();
  };
  // Ahead of the options' own checks, none of which then has to think of it.
  for (CLI::Option* option : command.get_options({})) option->transform(CLI::Validator(holds_something, ""));
}

CLI::Option* add_file_flag(CLI::App& command, const char* flag, std::string& path, const char* help) {
  return command.add_option(flag, path, help)->type_name("FILE");
}

void refuse_benchmark_flags(const Invocation& invocation) {
  if (!invocation.benchmark_flags.empty())
    throw UsageError(fmt::format("{}: this command measures nothing", invocation.benchmark_flags.front()));
}

CLI::Option* add_time_budget(CLI::App& command, double& seconds) {
  const auto lasts = [](const std::string& text) {
    constexpr double most_s = 1e6;  // 11 days; deadlines, which count nanoseconds, must not overflow
    double value = 0;
    const bool valid = CLI::detail::lexical_cast(text, value) && value > 0 && value <= most_s;
    return valid ? std::string()
                 : fmt::format("'{}' is no number of seconds above 0 and up to {:.0f}", text, most_s);
  };
  return command.add_option("--time-budget", seconds, "Seconds for the whole run")
      ->capture_default_str()
      ->check(lasts);
}

void add_local_flags(CLI::App& command, LocalFlags& flags, const char* gpu_help, const char* sizes_help) {
  command.add_option("--gpu", flags.gpu, gpu_help)->capture_default_str();
  command.add_option("--sizes", flags.sizes, sizes_help);
  command.add_option("--fabric", flags.fabric, fabric_help)->capture_default_str();
  add_time_budget(command, flags.time_budget_s);
  add_file_flag(command, "--out", flags.out, "Write the result file (JSON)");
  command.footer("Every --benchmark_* flag goes to Google Benchmark.");
}

}  // namespace gdrbench::cli
