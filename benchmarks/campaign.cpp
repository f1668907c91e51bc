#include "benchmarks/campaign.hpp"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

#include "benchmarks/library.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Of two runs of the campaign mostly the same, so that Google Benchmark's names, which hold it, match.
std::uint64_t round_iterations(double wanted) {
  constexpr double steps[] = {1, 1.5, 2, 3, 5, 7};
  if (!(wanted > 1)) return 1;
  const double decade = std::pow(10, std::floor(std::log10(wanted)));
  double rounded = decade;
  for (const double step : steps)
    if (step * decade <= wanted) rounded = step * decade;
  return static_cast<std::uint64_t>(std::max(1.0, std::floor(rounded)));
}

/// A measurement of the point under way.
struct Entry {
  Measurement* measurement;
  std::uint64_t iterations = 0;  // of a run; 0: the filter leaves it out, or it cannot be had
  double each_s = 0;             // of an iteration, by the calibration
  double overhead_s = 0;         // of a run, beside its iterations
};

class PointRun {
 public:
  PointRun(Point& point, const LibraryFlags& flags, Deadline deadline, Gatherer& gatherer,
           ResultDocument& document)
      : point_(point), flags_(flags), deadline_(deadline), gatherer_(gatherer), document_(document) {
    for (const auto& measurement : point.measurements) entries_.push_back({measurement.get()});
  }

  /// Throws what ends the campaign; what was kept until then is in the document all the same.
  void run(double budget_s) {
    const auto started = Clock::now();
    try {
      const double runs = static_cast<double>(flags_.blocks * entries_.size());
      const double first_guess_s =
          flags_.run_s.value_or(std::clamp(budget_s / (runs + 1), min_run_s, max_run_s));
      for (Entry& entry : entries_) calibrate(entry, first_guess_s);
      plan(budget_s - seconds_since(started));
      run_blocks();
    } catch (...) {
      finish();
      throw;
    }
    finish();
  }

 private:
  static constexpr double min_run_s = 0.005, max_run_s = 0.5;

  // As a run of the library that nobody hears of, so that its filter says whether the measurement is wanted
  // at all.
  void calibrate(Entry& entry, double run_s) {
    in_library(entry, 1, [&](benchmark::State& state) {
      try {
        entry.measurement->open();
        if (flags_.iterations) {
          entry.iterations = *flags_.iterations;
        } else {
          grow(entry, run_s);
        }
        state.SetIterationTime(1e-9);
      } catch (const Unavailable& unavailable) {  // this one alone
        entry.iterations = 0;
        entry.measurement->add_skipped(document_, unavailable.what());
        entry.measurement->close();
      }
    });
  }

  // Grows the iterations until a run takes a good part of `run_s`.
  void grow(Entry& entry, double run_s) {
    for (std::uint64_t n = 1;;) {
      entry.each_s = time_iteration(entry, n);
      // Other work on the machine can slow a single run many times.
      const bool long_enough = entry.each_s * static_cast<double>(n) >= run_s / 4;
      if (long_enough) entry.each_s = std::min(entry.each_s, time_iteration(entry, n));
      entry.iterations = round_iterations(run_s / entry.each_s);
      if (entry.iterations <= n || (long_enough && entry.iterations <= 4 * n)) return;
      n = std::min(entry.iterations, n * 10);
    }
  }

  double time_iteration(Entry& entry, std::uint64_t n) {
    const auto started = Clock::now();
    const double elapsed_s = entry.measurement->run(n, deadline_);
    entry.overhead_s = std::max(0.0, seconds_since(started) - elapsed_s);
    return std::max(elapsed_s, 1e-9) / static_cast<double>(n);
  }

  // What is left of the budget, in equal parts to all runs of all blocks.
  void plan(double budget_s) {
    if (flags_.run_s || flags_.iterations) return;
    double overhead_s = 0, wanted = 0;
    for (const Entry& entry : entries_)
      if (entry.iterations > 0) overhead_s += entry.overhead_s, ++wanted;
    if (wanted == 0) return;
    const auto blocks = static_cast<double>(flags_.blocks);
    const double run_s =
        std::clamp((budget_s - overhead_s * blocks) / (wanted * blocks), min_run_s, max_run_s);
    for (Entry& entry : entries_)
      if (entry.iterations > 0) entry.iterations = round_iterations(run_s / entry.each_s);
  }

  void run_blocks() {
    static std::mt19937 generator{std::random_device{}()};
    std::vector<Entry*> order;
    for (Entry& entry : entries_)
      if (entry.iterations > 0) order.push_back(&entry);
    for (std::size_t block = 0; block < flags_.blocks; ++block) {
      std::shuffle(order.begin(), order.end(), generator);
      for (Entry* entry : order)
        if (entry->iterations > 0) run_once(*entry);
    }
  }

  void run_once(Entry& entry) {
    in_library(
        entry, entry.iterations,
        [&](benchmark::State& state) {
          try {
            entry.measurement->run(entry.iterations, deadline_);
            entry.measurement->report(state);
            entry.measurement->keep();
          } catch (const Unavailable& unavailable) {
            entry.iterations = 0;
            entry.measurement->add_skipped(document_, unavailable.what());
            state.SkipWithError(unavailable.what());
          }
        },
        &gatherer_);
  }

  // One run of the library with that many iterations, all in one batch. What `body` throws is thrown here.
  template <class Body>
  void in_library(Entry& entry, std::uint64_t iterations, Body body,
                  benchmark::BenchmarkReporter* reporter = nullptr) {
    std::exception_ptr failure;
    benchmark::ClearRegisteredBenchmarks();
    benchmark::RegisterBenchmark(entry.measurement->name().c_str(),
                                 [&](benchmark::State& state) {
                                   while (state.KeepRunningBatch(state.max_iterations)) {
                                     try {
                                       body(state);
                                     } catch (const std::exception& fault) {
                                       failure = std::current_exception();
                                       state.SkipWithError(fault.what());
                                     }
                                   }
                                 })
        ->Iterations(static_cast<benchmark::IterationCount>(iterations))
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
    Silent silent;
    benchmark::RunSpecifiedBenchmarks(reporter != nullptr ? reporter : &silent);
    if (failure) std::rethrow_exception(failure);
  }

  void finish() {
    for (Entry& entry : entries_) {
      entry.measurement->close();
      entry.measurement->add_results(document_);
    }
  }

  Point& point_;
  const LibraryFlags& flags_;
  Deadline deadline_;
  Gatherer& gatherer_;
  ResultDocument& document_;
  std::vector<Entry> entries_;
};

// The library writes the names that its filter lets through.
void list(const std::vector<Point>& points, Gatherer& gatherer) {
  benchmark::ClearRegisteredBenchmarks();
  for (const Point& point : points)
    for (const auto& measurement : point.measurements)
      benchmark::RegisterBenchmark(measurement->name().c_str(), [](benchmark::State&) {})->UseManualTime();
  benchmark::RunSpecifiedBenchmarks(&gatherer);
}

void cut_short(ResultDocument& document, const std::string& why) {
  document.complete = false;
  document.incomplete_reason = why;
}

}  // namespace

std::exception_ptr run_campaign(std::vector<Point> points, const CampaignOptions& campaign,
                                ResultDocument& document) {
  const LibraryFlags flags = read_library_flags(campaign.benchmark_flags);
  initialise_library(flags);
  Gatherer gatherer(flags);
  const bool budgeted = !flags.run_s && !flags.iterations;
  const auto started = Clock::now();
  // What a run takes is foreseen from the first ones, which other work on the machine may prove wrong.
  const auto deadline = budgeted ? started + std::chrono::milliseconds(static_cast<std::int64_t>(
                                                 1500 * campaign.time_budget_s + 1000))
                                 : Deadline::max();
  document.complete = true;
  if (flags.lists) {
    list(points, gatherer);
    return nullptr;
  }
  std::exception_ptr failure;
  for (std::size_t i = 0; i < points.size() && document.complete; ++i) {
    const double left_s = campaign.time_budget_s - seconds_since(started);
    if (budgeted && left_s < 0) {
      cut_short(document, fmt::format("the time budget of {:g} s was used up before {}; raise --time-budget",
                                      campaign.time_budget_s, points[i].name));
      break;
    }
    if (campaign.progress) campaign.progress(i, points.size(), points[i].name);
    try {
      PointRun(points[i], flags, deadline, gatherer, document)
          .run(left_s / static_cast<double>(points.size() - i));
    } catch (const OutOfTime&) {  // which is no failure
      cut_short(document,
                fmt::format("far more than the time budget of {:g} s was used up in {}: the machine is busy; "
                            "raise --time-budget",
                            campaign.time_budget_s, points[i].name));
    } catch (const std::exception& fault) {
      failure = std::current_exception();
      cut_short(document, fault.what());
    }
    points[i].measurements.clear();
  }
  gatherer.finish(document);
  return failure;
}

}  // namespace gdrbench::benchmarks
