#include <algorithm>
#include <numeric>

#include "benchmarks/case_run.hpp"
#include "measure/summary.hpp"

namespace gdrbench::benchmarks {

std::uint64_t latency_warmup(std::uint64_t iterations) {
  return std::clamp<std::uint64_t>(iterations / 10, 1, 1000);
}

/// Of the visible suite too. The time of an iteration is the latency, half a round trip (for read the whole
/// operation), and not the time that the iteration took.
void report_latency(benchmark::State& state, const Case&, const RunResult& run) {
  state.SetIterationTime(std::accumulate(run.samples_us.begin(), run.samples_us.end(), 0.0) * 1e-6);
  const LatencySummary summary = measure::summarise(run.samples_us);
  state.counters["p50_us"] = summary.p50;
  state.counters["p99_us"] = summary.p99;
  state.counters["max_us"] = summary.max;
}

}  // namespace gdrbench::benchmarks
