#include "benchmarks/campaign.hpp"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <sstream>

#include "benchmarks/case_run.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/interrupt.hpp"
#include "gdrbench/size.hpp"

namespace gdrbench::benchmarks {
namespace {

template <class Run>
bool was_skipped(const Run& run) {
  if constexpr (requires { run.error_occurred; })
    return run.error_occurred;
  else
    return run.skipped != 0;  // Google Benchmark 1.8 on
}

/// Gathers what Google Benchmark reports of every point into one JSON text of its own format, counts the
/// repetitions that count, and passes all on to the library's display reporter when the user asked for its
/// output.
class Gatherer : public benchmark::BenchmarkReporter {
 public:
  explicit Gatherer(benchmark::BenchmarkReporter* display) : display_(display) {
    json_.SetOutputStream(&text_);
    json_.SetErrorStream(&ignored_);
    SetErrorStream(&ignored_);  // "no benchmark matches" is said once for all points, by the campaign
  }
  bool ReportContext(const Context& context) override {
    if (std::exchange(context_reported_, true)) return true;
    if (display_ != nullptr) display_->ReportContext(context);
    return json_.ReportContext(context);
  }
  void ReportRuns(const std::vector<Run>& reported) override {
    std::vector<Run> runs = reported;
    // It follows from the time budget: with it in their names, the cases of two files would not match.
    for (Run& run : runs) run.run_name.min_time.clear();
    json_.ReportRuns(runs);
    if (display_ != nullptr) display_->ReportRuns(runs);
    for (const Run& run : runs)
      if (run.run_type == Run::RT_Iteration && !was_skipped(run)) ++repetitions_[run.run_name.function_name];
  }
  std::size_t repetitions(const std::string& name) const {
    const auto found = repetitions_.find(name);
    return found == repetitions_.end() ? 0 : found->second;
  }
  nlohmann::json finish() {
    if (!context_reported_) return nlohmann::json::object();
    json_.Finalize();
    if (display_ != nullptr) display_->Finalize();
    return nlohmann::json::parse(text_.str());
  }

 private:
  benchmark::BenchmarkReporter* display_;
  benchmark::JSONReporter json_;
  std::ostringstream text_, ignored_;
  bool context_reported_ = false;
  std::map<std::string, std::size_t> repetitions_;
};

std::string flag_value(const std::vector<std::string>& flags, const std::string& name,
                       const std::string& otherwise) {
  std::string value = otherwise;
  for (const std::string& flag : flags)
    if (flag.rfind("--" + name + "=", 0) == 0) value = flag.substr(name.size() + 3);
  return value;
}

// Flags that the library takes and that would leave us without the repetitions, or abort the process.
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

// Seconds that a run must last for all of them to fit the budget. A repetition lasts 1.4 times that on
// average, and the first one of a case is approached in growing steps that together take about as long again;
// the rest is filling and checking the pattern.
double min_time_s(double budget_s, std::size_t cases, double repetitions) {
  constexpr double overhead_s = 0.03;
  const double each_s = 0.85 * budget_s / static_cast<double>(std::max<std::size_t>(cases, 1));
  return std::clamp((each_s - overhead_s * (repetitions + 5)) / (1.4 * repetitions + 1.5), 0.005, 0.5);
}

std::string point_name(const Point& point) {
  const Case& c = point.front();
  std::string name = fmt::format("{} {} {}", to_string(c.suite), to_string(c.op), format_size(c.size_bytes));
  if (!times_messages(c.suite)) name += fmt::format(" {}", to_string(c.direction));
  return name;
}

void add_skipped(ResultDocument& document, Path path, const std::string& reason) {
  for (const SkippedPath& known : document.skipped)
    if (known.path == path && known.reason == reason) return;
  document.skipped.push_back({path, reason});
}

// Runs the cases of one point, interleaved, and adds what they gave to the document. The failure that ends
// the campaign, if there was one.
std::exception_ptr run_point(std::vector<CaseRun>& cases, double min_time, bool time_given,
                             Gatherer& gatherer, ResultDocument& document) {
  benchmark::ClearRegisteredBenchmarks();
  for (CaseRun& run : cases) {
    auto* registered =
        benchmark::RegisterBenchmark(case_name(run.test_case()).c_str(), [&](benchmark::State& state) {
          run.measure(state);
          if (!run.failure()) return;
          try {
            std::rethrow_exception(run.failure());
          } catch (const Unavailable&) {  // this path alone
          } catch (...) {
            for (CaseRun& other : cases) other.cancel(run.failure());
          }
        });
    registered->UseManualTime()->Unit(benchmark::kMicrosecond);
    const bool half_round_trips = times_messages(run.test_case().suite) && run.test_case().op != Op::read;
    if (!time_given) registered->MinTime(half_round_trips ? min_time / 2 : min_time);
  }
  benchmark::RunSpecifiedBenchmarks(&gatherer);
  std::exception_ptr failure;
  for (CaseRun& run : cases) {
    run.close();
    CaseResult result{.test_case = run.test_case(),
                      .registration = Registration::none,
                      .proof = run.proof(),
                      .repetitions = {}};
    const std::string name = case_name(run.test_case());
    if (run.failure()) {
      try {
        std::rethrow_exception(run.failure());
      } catch (const Unavailable& unavailable) {
        add_skipped(document, run.test_case().path, fmt::format("{}: {}", name, unavailable.what()));
        continue;
      } catch (...) {
        failure = run.failure();
      }
    }
    // After a failure the library has reported nothing of some repetitions that did succeed; without one, the
    // last runs are the reported ones.
    result.repetitions = run.last_runs(gatherer.repetitions(name));
    if (result.repetitions.empty()) continue;
    result.registration = from_name<Registration>(
        result.proof.at("initiator").at("path").at("registration").get<std::string>());
    document.cases.push_back(std::move(result));
  }
  return failure;
}

}  // namespace

CampaignOutcome run_campaign(Session& session, const std::vector<Point>& points,
                             const MeasureOptions& options, const Discovery& discovery,
                             const CampaignOptions& campaign, ResultDocument& document) {
  check_flags(campaign.benchmark_flags);
  initialise_library(campaign.benchmark_flags);
  const bool display_wanted = !flag_value(campaign.benchmark_flags, "benchmark_format", "").empty();
  std::unique_ptr<benchmark::BenchmarkReporter> display(
      display_wanted ? benchmark::CreateDefaultDisplayReporter() : nullptr);
  Gatherer gatherer(display.get());
  const double repetitions = std::stoi(flag_value(campaign.benchmark_flags, "benchmark_repetitions", "5"));
  const bool time_given = !flag_value(campaign.benchmark_flags, "benchmark_min_time", "").empty();
  std::size_t cases_left = 0;
  for (const Point& point : points) cases_left += point.size();
  const auto started = std::chrono::steady_clock::now();

  document.complete = true;
  CampaignOutcome outcome;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - started;
    if (spent.count() > campaign.time_budget_s && !time_given) {
      document.complete = false;
      document.incomplete_reason =
          fmt::format("the time budget of {:.0f} s was used up before {}; raise --time-budget",
                      campaign.time_budget_s, point_name(points[i]));
      break;
    }
    if (campaign.progress) campaign.progress(i, points.size(), point_name(points[i]));
    std::vector<CaseRun> cases;
    for (const Case& c : points[i]) cases.emplace_back(session, c, responder_case(c, options, discovery));
    const double min_time = min_time_s(campaign.time_budget_s - spent.count(), cases_left, repetitions);
    cases_left -= points[i].size();
    outcome.failure = run_point(cases, min_time, time_given, gatherer, document);
    if (outcome.failure) {
      document.complete = false;
      try {
        std::rethrow_exception(outcome.failure);
      } catch (const std::exception& error) {
        document.incomplete_reason = error.what();
      }
      break;
    }
  }
  const nlohmann::json gathered = gatherer.finish();
  if (gathered.contains("context")) {
    document.context = gathered.at("context");
    document.benchmarks = gathered.at("benchmarks");
  }
  return outcome;
}

}  // namespace gdrbench::benchmarks
