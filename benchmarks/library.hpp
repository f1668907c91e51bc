#pragma once

#include <benchmark/benchmark.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

/// What every suite needs of Google Benchmark: its flags, and what it reports in its own format.
namespace gdrbench::benchmarks {

/// Gathers what Google Benchmark reports of every point into one JSON text of its own format, counts the
/// repetitions that count, and passes all on to the library's display reporter when the user asked for its
/// output.
class Gatherer : public benchmark::BenchmarkReporter {
 public:
  explicit Gatherer(benchmark::BenchmarkReporter* display);
  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& reported) override;
  std::size_t repetitions(const std::string& name) const;
  /// {"context", "benchmarks"}; an empty object when nothing was reported.
  nlohmann::json finish();

 private:
  benchmark::BenchmarkReporter* display_;
  benchmark::JSONReporter json_;
  std::ostringstream text_, ignored_;
  bool context_reported_ = false;
  std::map<std::string, std::size_t> repetitions_;
};

/// The value of the last flag of that name.
std::string flag_value(const std::vector<std::string>& flags, const std::string& name,
                       const std::string& otherwise);

/// Throws UsageError for flags that the library takes and that would leave us without the repetitions, or
/// abort the process.
void check_flags(const std::vector<std::string>& flags);

/// Throws UsageError for a flag that the library does not know.
void initialise_library(const std::vector<std::string>& user_flags);

/// Seconds that a run must last for all of them to fit the budget.
double min_time_s(double budget_s, std::size_t cases, double repetitions);

/// Ends a call of the library without a result.
void skip(benchmark::State& state, const std::string& why);

}  // namespace gdrbench::benchmarks
