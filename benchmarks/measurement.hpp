#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gdrbench/report.hpp"
#include "gdrbench/session.hpp"

namespace benchmark {
class State;
}

/// What a campaign measures: things that can be run for so many iterations, again and again.
namespace gdrbench::benchmarks {

using Deadline = std::chrono::steady_clock::time_point;

class Measurement {
 public:
  virtual ~Measurement() = default;
  /// In Google Benchmark's output, and to its filter: "latency/gdr/send/8/poll".
  virtual std::string name() const = 0;
  /// Takes what it needs until close(). Throws Unavailable with the reason when it cannot be had here.
  virtual void open() = 0;
  virtual void close() = 0;
  /// One run, all of it verified. Returns the seconds that its iterations took. Throws Error when a byte is
  /// wrong or the fabric fails, OutOfTime at the deadline, PeerLost, Interrupted.
  virtual double run(std::uint64_t iterations, Deadline deadline) = 0;
  /// What the last run means in Google Benchmark's terms: the time of its iterations, bytes, counters.
  virtual void report(benchmark::State& state) const = 0;
  /// The last run counts: it becomes a repetition.
  virtual void keep() = 0;
  /// Adds the repetitions kept to the document; nothing without any.
  virtual void add_results(ResultDocument& document) = 0;
  virtual void add_skipped(ResultDocument& document, const std::string& reason) const = 0;
};

/// Measurements that differ in the path alone, or in the load too. Their runs are interleaved in blocks, so
/// that drift hits all of them alike.
struct Point {
  std::string name;  ///< "latency send 8 B", for progress and for what was not measured
  std::vector<std::unique_ptr<Measurement>> measurements;
};

/// A case between the ranks of a session: `by_rank` has it with the fields of each. `sessions` holds one for
/// each pair that runs it at once, on this rank's threads.
struct PlacedCase {
  Session* session = nullptr;
  Case initiator, responder;
};
/// `pairs` of one case, all at the same time; mostly one.
std::unique_ptr<Measurement> measure_case(std::vector<PlacedCase> pairs);

/// What so many iterations of something within one process took: one entry for each of its results.
struct LocalRun {
  double elapsed_s = 0;
  std::vector<LocalRepetition> repetitions;
};
using LocalMeasure = std::function<LocalRun(std::uint64_t iterations)>;

/// Something to be measured without another rank. `prepare` takes what it needs, which goes when the case is
/// over; it throws Unavailable with the reason when this machine lacks it.
struct LocalCase {
  std::string name;                  ///< in Google Benchmark's output: "registration/host/4 KiB"
  std::string skipped_as;            ///< in LocalSkipped: "cuda dmabuf"
  std::vector<LocalResult> results;  ///< still without repetitions
  std::function<LocalMeasure()> prepare;
};
std::unique_ptr<Measurement> measure_local(LocalCase local);
/// Each a point of its own.
std::vector<Point> local_points(std::vector<LocalCase> cases);

}  // namespace gdrbench::benchmarks
