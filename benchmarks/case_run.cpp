#include "benchmarks/case_run.hpp"

#include <chrono>
#include <random>

#include "benchmarks/library.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::benchmarks {
namespace {

// No two runs share a pattern, so that data left over from another run never passes for this one's.
std::uint64_t fresh_seed() {
  static std::mt19937_64 generator{std::random_device{}()};
  return generator();
}

}  // namespace

void CaseRun::measure(benchmark::State& state) {
  if (failure_) {
    skip(state, "not run after an earlier failure");
    return;
  }
  try {
    const bool latency = times_messages(case_.suite);
    if (std::chrono::steady_clock::now() >= deadline_) throw OutOfTime();
    if (!open_) open_ = session_->open(case_, responder_case_);
    const auto iterations = static_cast<std::uint64_t>(state.max_iterations);
    const std::uint64_t warmup = latency ? latency_warmup(iterations) : bandwidth_warmup(iterations);
    RunResult run =
        open_->run({.iterations = iterations, .warmup = warmup, .seed = fresh_seed(), .deadline = deadline_});
    proofs_ = open_->proofs();  // counters are those of this run
    while (state.KeepRunningBatch(state.max_iterations))
      latency ? report_latency(state, case_, run) : report_bandwidth(state, case_, run);
    runs_.push_back(std::move(run));
  } catch (const std::exception& error) {
    failure_ = std::current_exception();
    skip(state, error.what());
  }
}

std::size_t CaseRun::repetitions() const {
  std::size_t count = 0;
  for (auto run = runs_.rbegin(); run != runs_.rend() && run->iterations == runs_.back().iterations; ++run)
    ++count;
  return count;
}

std::vector<RunResult> CaseRun::last_runs(std::size_t count) const {
  const std::size_t kept = std::min(count, runs_.size());
  return {runs_.end() - static_cast<std::ptrdiff_t>(kept), runs_.end()};
}

}  // namespace gdrbench::benchmarks
