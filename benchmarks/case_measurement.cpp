#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <optional>
#include <random>
#include <thread>

#include "benchmarks/measurement.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::benchmarks {
namespace {

// No two runs share a pattern, so that data left over from another run never passes for this one's.
std::uint64_t fresh_seed() {
  static std::mt19937_64 generator{std::random_device{}()};
  return generator();
}

// Untimed messages before the measured ones.
std::uint64_t warmup_of(const Case& c, std::uint64_t iterations) {
  return std::clamp<std::uint64_t>(iterations / 10, 1, times_messages(c.suite) ? 1000 : 64);
}

/// A case on one or several pairs at once, each pair with a session and, where there are several, a thread of
/// its own.
class CaseMeasurement final : public Measurement {
 public:
  explicit CaseMeasurement(std::vector<PlacedCase> pairs) : pairs_(std::move(pairs)), kept_(pairs_.size()) {}

  std::string name() const override { return case_name(first()); }

  void open() override {
    for (const PlacedCase& pair : pairs_) open_.push_back(pair.session->open(pair.initiator, pair.responder));
  }
  void close() override { open_.clear(); }

  double run(std::uint64_t iterations, Deadline deadline) override {
    std::vector<RunRequest> requests;
    for (std::size_t i = 0; i < open_.size(); ++i)
      requests.push_back({.iterations = iterations,
                          .warmup = warmup_of(first(), iterations),
                          .seed = fresh_seed(),
                          .deadline = deadline});
    last_ = open_.size() == 1 ? std::vector{open_.front()->run(requests.front())} : run_at_once(requests);
    double elapsed_s = 0;
    for (const RunResult& run : last_) elapsed_s = std::max(elapsed_s, run.elapsed_s);
    return elapsed_s;
  }

  void report(benchmark::State& state) const override {
    if (times_messages(first().suite))
      report_latency(state);
    else
      report_stream(state);
  }

  void keep() override {
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      kept_[i].proofs = open_[i]->proofs();  // counters are those of this run
      kept_[i].repetitions.push_back(std::move(last_[i]));
    }
  }

  void add_results(ResultDocument& document) override {
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      if (kept_[i].repetitions.empty()) continue;
      kept_[i].test_case = pairs_[i].initiator;
      kept_[i].registration = kept_[i].proofs.front().policy.registration;
      document.cases.push_back(std::move(kept_[i]));
    }
  }

  void add_skipped(ResultDocument& document, const std::string& reason) const override {
    const std::string text = fmt::format("{}: {}", name(), reason);
    for (const SkippedPath& known : document.skipped)
      if (known.path == first().path && known.reason == text) return;
    document.skipped.push_back({first().path, text});
  }

 private:
  const Case& first() const { return pairs_.front().initiator; }

  std::vector<RunResult> run_at_once(const std::vector<RunRequest>& requests) {
    std::vector<RunResult> results(open_.size());
    std::vector<std::exception_ptr> failures(open_.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < open_.size(); ++i)
      threads.emplace_back([&, i] {
        try {
          results[i] = open_[i]->run(requests[i]);
        } catch (...) {
          failures[i] = std::current_exception();
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (const std::exception_ptr& failure : failures)
      if (failure) std::rethrow_exception(failure);
    return results;
  }

  // The time of an iteration is the latency, and not the time that the iteration took: of a ping-pong half of
  // that.
  void report_latency(benchmark::State& state) const {
    double total_s = 0;
    LatencySummary worst;
    for (const RunResult& run : last_) {
      const RankResult& rank = run.ranks.front();
      const double sum_s = std::accumulate(rank.samples_ns.begin(), rank.samples_ns.end(), 0.0) * 1e-9;
      if (sum_s < total_s || !rank.latency_us) continue;
      total_s = sum_s;
      worst = *rank.latency_us;
    }
    state.SetIterationTime(total_s);
    state.counters["p50_us"] = worst.p50;
    state.counters["p99_us"] = worst.p99;
    state.counters["max_us"] = worst.max;
  }

  // The time of an iteration is that of one message in each measured direction, on every pair.
  void report_stream(benchmark::State& state) const {
    double cpu_s = 0, elapsed_s = 0;
    std::uint64_t payload_bytes = 0;
    for (const RunResult& run : last_) {
      elapsed_s = std::max(elapsed_s, run.elapsed_s);
      payload_bytes += run.payload_bytes;
      for (std::size_t rank = 0; rank < run.ranks.size(); ++rank) {
        const RankResult& result = run.ranks[rank];
        cpu_s += result.cpu.user_s + result.cpu.system_s;
        if (result.load)
          state.counters[std::string(spec(first().suite).roles.at(rank)) + "_units_per_s"] =
              result.load->together_units_per_second;
      }
    }
    state.SetIterationTime(elapsed_s);
    state.SetBytesProcessed(static_cast<std::int64_t>(payload_bytes));
    state.counters["cpu_s_per_gb"] = cpu_s / (static_cast<double>(payload_bytes) * 1e-9);
  }

  std::vector<PlacedCase> pairs_;
  std::vector<std::unique_ptr<OpenCase>> open_;
  std::vector<RunResult> last_;   // of each pair
  std::vector<CaseResult> kept_;  // likewise
};

}  // namespace

std::unique_ptr<Measurement> measure_case(std::vector<PlacedCase> pairs) {
  return std::make_unique<CaseMeasurement>(std::move(pairs));
}

}  // namespace gdrbench::benchmarks
