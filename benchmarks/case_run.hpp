#pragma once

#include <benchmark/benchmark.h>

#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "gdrbench/session.hpp"

namespace gdrbench::benchmarks {

/// A case as Google Benchmark runs it: that library calls again and again with growing iteration counts until
/// a run is long enough, and then once for each further repetition. The connection is made once; every call
/// is a run of its own on both ends.
class CaseRun {
 public:
  /// Runs that are not over at the deadline end in OutOfTime.
  CaseRun(Session& session, Case initiator, Case responder, std::chrono::steady_clock::time_point deadline)
      : session_(&session),
        case_(std::move(initiator)),
        responder_case_(std::move(responder)),
        deadline_(deadline) {}

  const Case& test_case() const { return case_; }
  /// One call of the library: runs `state.max_iterations` and sets time and counters. A failure is kept and
  /// skips this call and all later ones.
  void measure(benchmark::State& state);

  std::exception_ptr failure() const { return failure_; }
  /// Ends calls to come: another case has failed.
  void cancel(std::exception_ptr why) { failure_ = std::move(why); }
  /// Runs so far with the iterations that the library has settled on.
  std::size_t repetitions() const;
  /// The last `count` runs: those that the library reports.
  std::vector<RunResult> last_runs(std::size_t count) const;
  const std::vector<PathProof>& proofs() const { return proofs_; }
  void close() { open_.reset(); }

 private:
  Session* session_;
  Case case_, responder_case_;
  std::chrono::steady_clock::time_point deadline_;
  std::unique_ptr<OpenCase> open_;
  std::vector<PathProof> proofs_;
  std::vector<RunResult> runs_;
  std::exception_ptr failure_;
};

/// What a run means in Google Benchmark's terms; one function a suite, in the file of its name.
void report_latency(benchmark::State& state, const Case& c, const RunResult& run);
void report_bandwidth(benchmark::State& state, const Case& c, const RunResult& run);
/// Untimed messages before `iterations` measured ones.
std::uint64_t latency_warmup(std::uint64_t iterations);
std::uint64_t bandwidth_warmup(std::uint64_t iterations);

}  // namespace gdrbench::benchmarks
