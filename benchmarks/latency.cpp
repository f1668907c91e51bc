#include <algorithm>
#include <numeric>

#include "benchmarks/case_run.hpp"

namespace gdrbench::benchmarks {

std::uint64_t latency_warmup(std::uint64_t iterations) {
  return std::clamp<std::uint64_t>(iterations / 10, 1, 1000);
}

/// Of the visible suite too. The time of an iteration is the latency, half a round trip (for read the whole
/// operation), and not the time that the iteration took.
void report_latency(benchmark::State& state, const Case&, const RunResult& run) {
  state.SetIterationTime(
      std::accumulate(run.ranks.front().samples_ns.begin(), run.ranks.front().samples_ns.end(), 0.0) * 1e-9);
  const LatencySummary summary = run.ranks.front().latency_us.value_or(LatencySummary{});
  state.counters["p50_us"] = summary.p50;
  state.counters["p99_us"] = summary.p99;
  state.counters["max_us"] = summary.max;
}

}  // namespace gdrbench::benchmarks
