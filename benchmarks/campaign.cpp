#include "benchmarks/campaign.hpp"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "benchmarks/case_run.hpp"
#include "benchmarks/library.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/size.hpp"

namespace gdrbench::benchmarks {
namespace {

std::string point_name(const Point& point) {
  const Case& c = point.front();
  std::string name =
      fmt::format("{} {} {}", to_string(c.suite), to_string(c.op), format_exact_size(c.size_bytes));
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
  bool out_of_time = false;
  for (CaseRun& run : cases) {
    run.close();
    CaseResult result{.test_case = run.test_case(),
                      .registration = Registration::none,
                      .proofs = run.proofs(),
                      .repetitions = {}};
    const std::string name = case_name(run.test_case());
    if (run.failure()) {
      try {
        std::rethrow_exception(run.failure());
      } catch (const Unavailable& unavailable) {
        add_skipped(document, run.test_case().path, fmt::format("{}: {}", name, unavailable.what()));
        continue;
      } catch (const OutOfTime&) {
        failure = run.failure();
        out_of_time = true;
      } catch (...) {
        failure = run.failure();
      }
    }
    // After a failure the library has reported nothing of some repetitions that did succeed; without one, the
    // last runs are the reported ones.
    result.repetitions = run.last_runs(out_of_time ? run.repetitions() : gatherer.repetitions(name));
    if (result.repetitions.empty()) continue;
    result.registration = result.proofs.front().policy.registration;
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

  // What a run takes is foreseen from the first ones, which other work on the machine may prove wrong.
  const auto deadline = time_given ? std::chrono::steady_clock::time_point::max()
                                   : started + std::chrono::milliseconds(static_cast<std::int64_t>(
                                                   1500 * campaign.time_budget_s + 1000));

  document.complete = true;
  CampaignOutcome outcome;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - started;
    if (spent.count() > campaign.time_budget_s && !time_given) {
      document.complete = false;
      document.incomplete_reason =
          fmt::format("the time budget of {:g} s was used up before {}; raise --time-budget",
                      campaign.time_budget_s, point_name(points[i]));
      break;
    }
    if (campaign.progress) campaign.progress(i, points.size(), point_name(points[i]));
    std::vector<CaseRun> cases;
    for (const Case& c : points[i])
      cases.emplace_back(session, c, responder_case(c, options, discovery), deadline);
    const double min_time = min_time_s(campaign.time_budget_s - spent.count(), cases_left, repetitions);
    cases_left -= points[i].size();
    outcome.failure = run_point(cases, min_time, time_given, gatherer, document);
    if (outcome.failure) {
      document.complete = false;
      try {
        std::rethrow_exception(outcome.failure);
      } catch (const OutOfTime&) {  // which is no failure
        outcome.failure = nullptr;
        document.incomplete_reason = fmt::format(
            "far more than the time budget of {:g} s was used up in {}: the machine is busy; raise "
            "--time-budget",
            campaign.time_budget_s, point_name(points[i]));
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
