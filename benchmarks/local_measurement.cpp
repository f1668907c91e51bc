#include <benchmark/benchmark.h>

#include "benchmarks/measurement.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/interrupt.hpp"

namespace gdrbench::benchmarks {
namespace {

class LocalMeasurement final : public Measurement {
 public:
  explicit LocalMeasurement(LocalCase local) : local_(std::move(local)) {}

  std::string name() const override { return local_.name; }
  void open() override { measure_ = local_.prepare(); }
  void close() override { measure_ = nullptr; }

  double run(std::uint64_t iterations, Deadline deadline) override {
    throw_if_interrupted();
    if (std::chrono::steady_clock::now() >= deadline) throw OutOfTime();
    last_ = measure_(iterations);
    return last_.elapsed_s;
  }
  void report(benchmark::State& state) const override { state.SetIterationTime(last_.elapsed_s); }
  void keep() override {
    for (std::size_t i = 0; i < local_.results.size(); ++i)
      local_.results[i].repetitions.push_back(last_.repetitions.at(i));
  }

  void add_results(ResultDocument& document) override {
    for (LocalResult& result : local_.results)
      if (!result.repetitions.empty()) document.local.push_back(std::move(result));
  }
  void add_skipped(ResultDocument& document, const std::string& reason) const override {
    const std::string& suite = local_.results.front().suite;
    for (const LocalSkipped& known : document.local_skipped)
      if (known.suite == suite && known.what == local_.skipped_as && known.reason == reason) return;
    document.local_skipped.push_back({suite, local_.skipped_as, reason});
  }

 private:
  LocalCase local_;
  LocalMeasure measure_;
  LocalRun last_;
};

}  // namespace

std::unique_ptr<Measurement> measure_local(LocalCase local) {
  return std::make_unique<LocalMeasurement>(std::move(local));
}

std::vector<Point> local_points(std::vector<LocalCase> cases) {
  std::vector<Point> points;
  for (LocalCase& one : cases) {
    Point point{.name = one.name, .measurements = {}};
    point.measurements.push_back(measure_local(std::move(one)));
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace gdrbench::benchmarks
