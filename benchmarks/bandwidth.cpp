#include <algorithm>

#include "benchmarks/case_run.hpp"

namespace gdrbench::benchmarks {

std::uint64_t bandwidth_warmup(std::uint64_t iterations) {
  return std::clamp<std::uint64_t>(iterations / 10, 1, 64);
}

/// The time of an iteration is that of one message in each measured direction.
void report_bandwidth(benchmark::State& state, const Case&, const RunResult& run) {
  state.SetIterationTime(run.elapsed_s);
  state.SetBytesProcessed(static_cast<std::int64_t>(run.payload_bytes));
  const double cpu_s =
      run.initiator.user_s + run.initiator.system_s + run.responder.user_s + run.responder.system_s;
  state.counters["cpu_s_per_gb"] = cpu_s / (static_cast<double>(run.payload_bytes) * 1e-9);
}

}  // namespace gdrbench::benchmarks
