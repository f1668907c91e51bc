#include "benchmarks/library.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gdrbench/error.hpp"

namespace gdrbench::benchmarks {
namespace {

template <class Run>
bool was_skipped(const Run& run) {
  if constexpr (requires { run.error_occurred; })
    return run.error_occurred;
  else
    return run.skipped != 0;  // Google Benchmark 1.8 on
}

}  // namespace

Gatherer::Gatherer(benchmark::BenchmarkReporter* display) : display_(display) {
  json_.SetOutputStream(&text_);
  json_.SetErrorStream(&ignored_);
  SetErrorStream(&ignored_);  // "no benchmark matches" is said once for all points, by the campaign
}

bool Gatherer::ReportContext(const Context& context) {
  if (std::exchange(context_reported_, true)) return true;
  if (display_ != nullptr) display_->ReportContext(context);
  return json_.ReportContext(context);
}

void Gatherer::ReportRuns(const std::vector<Run>& reported) {
  std::vector<Run> runs = reported;
  // It follows from the time budget: with it in their names, the cases of two files would not match.
  for (Run& run : runs) run.run_name.min_time.clear();
  json_.ReportRuns(runs);
  if (display_ != nullptr) display_->ReportRuns(runs);
  for (const Run& run : runs)
    if (run.run_type == Run::RT_Iteration && !was_skipped(run)) ++repetitions_[run.run_name.function_name];
}

std::size_t Gatherer::repetitions(const std::string& name) const {
  const auto found = repetitions_.find(name);
  return found == repetitions_.end() ? 0 : found->second;
}

nlohmann::json Gatherer::finish() {
  if (!context_reported_) return nlohmann::json::object();
  json_.Finalize();
  if (display_ != nullptr) display_->Finalize();
  return nlohmann::json::parse(text_.str());
}

std::string flag_value(const std::vector<std::string>& flags, const std::string& name,
                       const std::string& otherwise) {
  std::string value = otherwise;
  for (const std::string& flag : flags)
    if (flag.rfind("--" + name + "=", 0) == 0) value = flag.substr(name.size() + 3);
  return value;
}

void check_flags(const std::vector<std::string>& flags) {
  for (const std::string& flag : flags)
    if (flag.find("aggregates_only") != std::string::npos && !flag.ends_with("=false"))
      throw UsageError(fmt::format("{}: results keep every repetition, so this flag is refused", flag));
  const std::string count = flag_value(flags, "benchmark_repetitions", "5");
  if (count.empty() || count.size() > 4 || count.find_first_not_of("0123456789") != std::string::npos ||
      std::stoi(count) < 1)
    throw UsageError(fmt::format("--benchmark_repetitions={}: give a whole number from 1 to 9999", count));
  const std::string format = flag_value(flags, "benchmark_format", "console");
  if (format != "console" && format != "json" && format != "csv")
    throw UsageError(fmt::format("--benchmark_format={}: use one of console, json, csv", format));
}

void initialise_library(const std::vector<std::string>& user_flags) {
  // The library keeps pointing to the first one.
  static std::vector<std::string> arguments;
  arguments = {"gdrbench", "--benchmark_repetitions=5", "--benchmark_enable_random_interleaving=true"};
  arguments.insert(arguments.end(), user_flags.begin(), user_flags.end());
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  int argc = static_cast<int>(arguments.size());
  benchmark::Initialize(&argc, argv.data());
  if (argc > 1)
    throw UsageError(fmt::format(
        "Google Benchmark does not know '{}'; known ones are --benchmark_filter, --benchmark_repetitions, "
        "--benchmark_min_time, --benchmark_format, --benchmark_out and those in its manual",
        argv[1]));
}

// A repetition lasts 1.4 times that on average, and the first one of a case is approached in growing steps
// that together take about as long again; the rest is filling and checking the pattern.
double min_time_s(double budget_s, std::size_t cases, double repetitions) {
  constexpr double overhead_s = 0.03;
  const double each_s = 0.85 * budget_s / static_cast<double>(std::max<std::size_t>(cases, 1));
  return std::clamp((each_s - overhead_s * (repetitions + 5)) / (1.4 * repetitions + 1.5), 0.005, 0.5);
}

// Counted as run: the library aborts (ComputeStats) when the repetitions of a case differ in their
// iterations, those that were skipped included.
void skip(benchmark::State& state, const std::string& why) {
  state.KeepRunningBatch(state.max_iterations);
  state.SkipWithError(why.c_str());
}

}  // namespace gdrbench::benchmarks
