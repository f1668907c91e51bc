#include <benchmark/benchmark.h>
#include <gtest/gtest.h>

#include <map>

#include "benchmarks/campaign.hpp"
#include "benchmarks/library.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::benchmarks {
namespace {

TEST(LibraryFlags, that_lay_out_a_campaign_are_ours) {
  const LibraryFlags flags =
      read_library_flags({"--benchmark_repetitions=9", "--benchmark_min_time=0.25",
                          "--benchmark_enable_random_interleaving=true", "--benchmark_filter=gdr"});
  EXPECT_EQ(flags.blocks, 9U);
  EXPECT_EQ(flags.run_s, 0.25);
  EXPECT_FALSE(flags.iterations);
  EXPECT_EQ(flags.passed_through, std::vector<std::string>{"--benchmark_filter=gdr"});
}

TEST(LibraryFlags, take_min_time_in_both_forms_of_the_library) {
  EXPECT_EQ(read_library_flags({"--benchmark_min_time=2s"}).run_s, 2);
  EXPECT_EQ(read_library_flags({"--benchmark_min_time=100x"}).iterations, 100U);
}

TEST(LibraryFlags, that_make_no_sense_are_refused_by_name) {
  for (const std::string flag :
       {"--benchmark_repetitions=0", "--benchmark_repetitions=x",
        "--benchmark_repetitions=", "--benchmark_min_time=-1", "--benchmark_min_time=1.5x",
        "--benchmark_min_time=", "--benchmark_min_time=1h", "--benchmark_format=xml",
        "--benchmark_report_aggregates_only=true"}) {
    try {
      read_library_flags({flag});
      ADD_FAILURE() << flag << " was accepted";
    } catch (const UsageError& fault) {
      EXPECT_NE(std::string(fault.what()).find(flag), std::string::npos) << fault.what();
    }
  }
}

/// What became of the measurements of a test.
struct Log {
  std::map<std::string, std::vector<std::uint64_t>> runs;  // iterations, by name
  std::vector<std::string> order;
};

/// Every iteration takes a millisecond, though the clock does not move.
class FakeMeasurement final : public Measurement {
 public:
  FakeMeasurement(Log& log, std::string name) : log_(log), name_(std::move(name)) {}
  std::string name() const override { return name_; }
  void open() override {
    if (!refusal.empty()) throw Unavailable(refusal);
    open_ = true;
  }
  void close() override { open_ = false; }
  double run(std::uint64_t iterations, Deadline) override {
    EXPECT_TRUE(open_);
    log_.runs[name_].push_back(iterations);
    log_.order.push_back(name_);
    if (log_.runs[name_].size() == fails_at) throw Error("wrong byte");
    elapsed_s_ = 1e-3 * static_cast<double>(iterations);
    return elapsed_s_;
  }
  void report(benchmark::State& state) const override { state.SetIterationTime(elapsed_s_); }
  void keep() override { ++kept_; }
  void add_results(ResultDocument& document) override {
    if (kept_ > 0)
      document.local.push_back({.suite = name_,
                                .what = "fake",
                                .labels = {},
                                .size_bytes = 1,
                                .repetitions = std::vector<LocalRepetition>(kept_)});
  }
  void add_skipped(ResultDocument& document, const std::string& reason) const override {
    document.local_skipped.push_back({name_, "fake", reason});
  }

  std::string refusal;
  std::size_t fails_at = 0;

 private:
  Log& log_;
  std::string name_;
  bool open_ = false;
  double elapsed_s_ = 0;
  std::size_t kept_ = 0;
};

struct Fixture {
  Log log;
  ResultDocument document;
  std::vector<Point> points;
  FakeMeasurement& add(const std::string& name) {
    if (points.empty()) points.push_back({.name = "a point", .measurements = {}});
    auto measurement = std::make_unique<FakeMeasurement>(log, name);
    FakeMeasurement& added = *measurement;
    points.back().measurements.push_back(std::move(measurement));
    return added;
  }
  std::exception_ptr run(std::vector<std::string> flags, double budget_s = 60) {
    return run_campaign(std::move(points),
                        {.benchmark_flags = std::move(flags), .time_budget_s = budget_s, .progress = {}},
                        document);
  }
};

TEST(Campaign, runs_every_measurement_once_in_each_block_with_fixed_iterations) {
  Fixture fixture;
  fixture.add("a");
  fixture.add("b");
  ASSERT_FALSE(fixture.run({"--benchmark_repetitions=7", "--benchmark_min_time=30x"}));
  for (const char* name : {"a", "b"})
    EXPECT_EQ(fixture.log.runs[name], std::vector<std::uint64_t>(7, 30)) << name;
  // Two runs of one measurement in a row only where one block ends with it and the next begins with it.
  for (std::size_t block = 0; block < 7; ++block)
    EXPECT_NE(fixture.log.order[2 * block], fixture.log.order[2 * block + 1]);
  ASSERT_EQ(fixture.document.local.size(), 2U);
  EXPECT_EQ(fixture.document.local[0].repetitions.size(), 7U);
  EXPECT_TRUE(fixture.document.complete);
}

TEST(Campaign, writes_every_run_as_google_benchmark_does) {
  Fixture fixture;
  fixture.add("a");
  ASSERT_FALSE(fixture.run({"--benchmark_repetitions=3", "--benchmark_min_time=30x"}));
  ASSERT_EQ(fixture.document.benchmarks.size(), 3U);
  for (const nlohmann::json& entry : fixture.document.benchmarks) {
    EXPECT_EQ(entry.at("name"), "a/iterations:30/manual_time");
    EXPECT_EQ(entry.at("iterations"), 30);
    EXPECT_NEAR(entry.at("real_time").get<double>(), 1000, 1e-6);  // microseconds of an iteration
  }
  EXPECT_TRUE(fixture.document.context.contains("num_cpus"));
}

TEST(Campaign, calibrates_the_iterations_of_a_run_to_the_time_asked_for) {
  Fixture fixture;
  fixture.add("a");
  ASSERT_FALSE(fixture.run({"--benchmark_repetitions=2", "--benchmark_min_time=0.2"}));
  const std::vector<std::uint64_t>& runs = fixture.log.runs["a"];
  ASSERT_GE(runs.size(), 3U);
  EXPECT_EQ(runs.front(), 1U);
  EXPECT_EQ(runs[runs.size() - 1], 200U);
  EXPECT_EQ(runs[runs.size() - 2], 200U);
}

TEST(Campaign, leaves_out_what_the_filter_does_not_match) {
  Fixture fixture;
  fixture.add("a");
  fixture.add("b");
  ASSERT_FALSE(fixture.run({"--benchmark_filter=^b", "--benchmark_min_time=3x"}));
  EXPECT_FALSE(fixture.log.runs.contains("a"));
  EXPECT_EQ(fixture.document.local.size(), 1U);
  benchmark::SetBenchmarkFilter("");  // which the library keeps
}

TEST(Campaign, skips_what_is_not_to_be_had_with_its_reason_and_measures_the_rest) {
  Fixture fixture;
  fixture.add("a").refusal = "no such device";
  fixture.add("b");
  ASSERT_FALSE(fixture.run({"--benchmark_min_time=3x"}));
  ASSERT_EQ(fixture.document.local_skipped.size(), 1U);
  EXPECT_EQ(fixture.document.local_skipped[0].reason, "no such device");
  EXPECT_EQ(fixture.document.local.size(), 1U);
  EXPECT_TRUE(fixture.document.complete);
}

TEST(Campaign, ends_at_a_failure_and_keeps_what_was_measured) {
  Fixture fixture;
  fixture.add("a").fails_at = 3;
  const std::exception_ptr failure = fixture.run({"--benchmark_min_time=3x"});
  ASSERT_TRUE(failure);
  EXPECT_THROW(std::rethrow_exception(failure), Error);
  ASSERT_EQ(fixture.document.local.size(), 1U);
  EXPECT_EQ(fixture.document.local[0].repetitions.size(), 2U);
  EXPECT_FALSE(fixture.document.complete);
  EXPECT_EQ(fixture.document.incomplete_reason, "wrong byte");
}

TEST(Campaign, that_has_no_time_left_names_what_was_not_measured) {
  Fixture fixture;
  fixture.add("a");
  ASSERT_FALSE(fixture.run({}, -1));
  EXPECT_TRUE(fixture.log.runs.empty());
  EXPECT_FALSE(fixture.document.complete);
  EXPECT_NE(fixture.document.incomplete_reason.find("before a point"), std::string::npos);
}

}  // namespace
}  // namespace gdrbench::benchmarks
