#include <algorithm>

#include "benchmarks/case_run.hpp"

namespace gdrbench::benchmarks {

std::uint64_t bandwidth_warmup(std::uint64_t iterations) {
  return std::clamp<std::uint64_t>(iterations / 10, 1, 64);
}

/// Of the overlap suite too. The time of an iteration is that of one message in each measured direction.
void report_bandwidth(benchmark::State& state, const Case&, const RunResult& run) {
  state.SetIterationTime(run.elapsed_s);
  state.SetBytesProcessed(static_cast<std::int64_t>(run.payload_bytes));
  const double cpu_s =
      run.initiator.user_s + run.initiator.system_s + run.responder.user_s + run.responder.system_s;
  if (run.initiator_load)
    state.counters["initiator_units_per_s"] = run.initiator_load->together_units_per_second;
  if (run.responder_load)
    state.counters["responder_units_per_s"] = run.responder_load->together_units_per_second;
  state.counters["cpu_s_per_gb"] = cpu_s / (static_cast<double>(run.payload_bytes) * 1e-9);
}

}  // namespace gdrbench::benchmarks
