#include <algorithm>
#include <string>

#include "benchmarks/case_run.hpp"

namespace gdrbench::benchmarks {

std::uint64_t bandwidth_warmup(std::uint64_t iterations) {
  return std::clamp<std::uint64_t>(iterations / 10, 1, 64);
}

/// Of the overlap suite too. The time of an iteration is that of one message in each measured direction.
void report_bandwidth(benchmark::State& state, const Case& c, const RunResult& run) {
  state.SetIterationTime(run.elapsed_s);
  state.SetBytesProcessed(static_cast<std::int64_t>(run.payload_bytes));
  double cpu_s = 0;
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank) {
    const RankResult& result = run.ranks[rank];
    cpu_s += result.cpu.user_s + result.cpu.system_s;
    if (result.load)
      state.counters[std::string(spec(c.suite).roles.at(rank)) + "_units_per_s"] =
          result.load->together_units_per_second;
  }
  state.counters["cpu_s_per_gb"] = cpu_s / (static_cast<double>(run.payload_bytes) * 1e-9);
}

}  // namespace gdrbench::benchmarks
