#include "benchmarks/local_campaign.hpp"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "benchmarks/library.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/interrupt.hpp"

namespace gdrbench::benchmarks {
namespace {

void add_skipped(ResultDocument& document, const LocalCase& one, const std::string& reason) {
  const std::string& suite = one.results.front().suite;
  for (const LocalSkipped& known : document.local_skipped)
    if (known.suite == suite && known.what == one.skipped_as && known.reason == reason) return;
  document.local_skipped.push_back({suite, one.skipped_as, reason});
}

void run_case(const LocalCase& one, double min_time, bool time_given, Gatherer& gatherer,
              ResultDocument& document) {
  const LocalMeasure measure = one.prepare();
  std::vector<LocalRun> runs;
  std::exception_ptr failure;
  benchmark::ClearRegisteredBenchmarks();
  auto* registered = benchmark::RegisterBenchmark(one.name.c_str(), [&](benchmark::State& state) {
    if (failure) return skip(state, "not run after an earlier failure");
    try {
      throw_if_interrupted();
      LocalRun run = measure(static_cast<std::uint64_t>(state.max_iterations));
      while (state.KeepRunningBatch(state.max_iterations)) state.SetIterationTime(run.elapsed_s);
      runs.push_back(std::move(run));
    } catch (const std::exception& error) {
      failure = std::current_exception();
      skip(state, error.what());
    }
  });
  registered->UseManualTime()->Unit(benchmark::kMicrosecond);
  if (!time_given) registered->MinTime(min_time);
  benchmark::RunSpecifiedBenchmarks(&gatherer);
  if (failure) std::rethrow_exception(failure);
  const std::size_t kept = std::min(gatherer.repetitions(one.name), runs.size());
  if (kept == 0) return;
  for (std::size_t i = 0; i < one.results.size(); ++i) {
    LocalResult result = one.results[i];
    for (std::size_t run = runs.size() - kept; run < runs.size(); ++run)
      result.repetitions.push_back(runs[run].repetitions[i]);
    document.local.push_back(std::move(result));
  }
}

void add_output(const nlohmann::json& gathered, ResultDocument& document) {
  if (!gathered.contains("context")) return;
  document.context = gathered.at("context");
  for (const nlohmann::json& entry : gathered.at("benchmarks")) document.benchmarks.push_back(entry);
}

void cut_short(ResultDocument& document, const std::string& why) {
  document.complete = false;
  document.incomplete_reason = why;
}

}  // namespace

std::exception_ptr run_local(const std::vector<LocalCase>& cases, const CampaignOptions& campaign,
                             ResultDocument& document) {
  check_flags(campaign.benchmark_flags);
  initialise_library(campaign.benchmark_flags);
  Gatherer gatherer(nullptr);
  const double repetitions = std::stoi(flag_value(campaign.benchmark_flags, "benchmark_repetitions", "5"));
  const bool time_given = !flag_value(campaign.benchmark_flags, "benchmark_min_time", "").empty();
  const auto started = std::chrono::steady_clock::now();
  std::exception_ptr failure;
  for (std::size_t i = 0; i < cases.size() && !failure; ++i) {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - started;
    if (spent.count() > campaign.time_budget_s && !time_given) {
      cut_short(document, fmt::format("the time budget of {:g} s was used up before {}; raise --time-budget",
                                      campaign.time_budget_s, cases[i].name));
      break;
    }
    if (campaign.progress) campaign.progress(i, cases.size(), cases[i].name);
    try {
      const double min_time =
          min_time_s(campaign.time_budget_s - spent.count(), cases.size() - i, repetitions);
      run_case(cases[i], min_time, time_given, gatherer, document);
    } catch (const Unavailable& unavailable) {
      add_skipped(document, cases[i], unavailable.what());
    } catch (const std::exception& error) {
      failure = std::current_exception();
      cut_short(document, fmt::format("{}: {}", cases[i].name, error.what()));
    }
  }
  add_output(gatherer.finish(), document);
  return failure;
}

}  // namespace gdrbench::benchmarks
