#pragma once

#include <benchmark/benchmark.h>

#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "gdrbench/report.hpp"

/// Google Benchmark as the campaign drives it: its flags, and what it reports in its own format.
namespace gdrbench::benchmarks {

/// What --benchmark_* flags say. Those that lay out a campaign are taken by ours, which has the same meaning
/// for them; the others pass through to the library.
struct LibraryFlags {
  std::size_t blocks = 5;                   ///< --benchmark_repetitions
  std::optional<double> run_s;              ///< --benchmark_min_time=0.5 or 0.5s: of a run
  std::optional<std::uint64_t> iterations;  ///< --benchmark_min_time=100x: of a run
  bool display = false;                     ///< --benchmark_format: the library's own output is wanted
  bool lists = false;                       ///< --benchmark_list_tests: nothing is measured
  std::vector<std::string> passed_through;
};
/// Throws UsageError that names the flag.
LibraryFlags read_library_flags(const std::vector<std::string>& flags);

/// Throws UsageError for a flag that the library does not know.
void initialise_library(const LibraryFlags& flags);

/// Nobody hears of these runs.
class Silent : public benchmark::BenchmarkReporter {
 public:
  Silent();
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}

 private:
  std::ostringstream ignored_;
};

/// Gathers what the library reports of every run into one JSON text of its own format, and passes all on to
/// its display reporter when the user asked for its output.
class Gatherer : public benchmark::BenchmarkReporter {
 public:
  explicit Gatherer(const LibraryFlags& flags);
  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& reported) override;
  /// Adds the library's "context" and "benchmarks" to the document's, if anything was reported.
  void finish(ResultDocument& document);

 private:
  std::unique_ptr<benchmark::BenchmarkReporter> display_;
  benchmark::JSONReporter json_;
  std::ostringstream text_, ignored_;
  bool context_reported_ = false;
};

}  // namespace gdrbench::benchmarks
