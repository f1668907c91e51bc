#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gdrbench/error.hpp"
#include "measure/load_meter.hpp"

namespace gdrbench::measure {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

/// Works on a clock that the test moves.
struct World {
  double now_s = 1000;
  double units_per_second = 500;
  double started_s = 0;
  int starts = 0, stops = 0;

  LoadMeter::Times times() {
    return {
        .now_s = [this] { return now_s; },
        .sleep =
            [this](std::chrono::milliseconds span) { now_s += std::chrono::duration<double>(span).count(); }};
  }
};

class Source : public LoadSource {
 public:
  explicit Source(World& world) : world_(world) {}
  void start() override {
    ++world_.starts;
    world_.started_s = world_.now_s;
  }
  std::uint64_t units() override {
    return static_cast<std::uint64_t>((world_.now_s - world_.started_s) * world_.units_per_second + 0.5);
  }
  void stop() override { ++world_.stops; }
  LoadProof describe() const override { return {.kind = Load::compute, .gpu_uuid = ""}; }

 private:
  World& world_;
};

TEST(LoadMeter, tells_the_rate_alone_and_that_of_the_timed_part) {
  World world;
  LoadMeter meter(std::make_unique<Source>(world), world.times());
  meter.start();
  world.now_s += 3;  // warm-up is not the timed part
  meter.begin();
  world.now_s += 7;
  meter.begin();  // begun anew
  const double begun_s = world.now_s;
  // From here on the transfer takes a tenth of the work.
  world.started_s = begun_s - (begun_s - world.started_s) * 500 / 450;
  world.units_per_second = 450;
  world.now_s += 2;
  const LoadRates rates = meter.end();
  EXPECT_NEAR(rates.alone_units_per_second, 500, 5);
  EXPECT_NEAR(rates.together_units_per_second, 450, 1);
}

TEST(LoadMeter, measures_the_load_alone_before_the_first_run_only) {
  World world;
  LoadMeter meter(std::make_unique<Source>(world), world.times());
  meter.start();
  EXPECT_GE(world.now_s, 1000 + 0.15);
  meter.stop();
  world.units_per_second = 50;
  const double before_s = world.now_s;
  meter.start();
  EXPECT_LT(world.now_s, before_s + 0.1);
  meter.begin();
  world.now_s += 1;
  EXPECT_NEAR(meter.end().alone_units_per_second, 500, 5);
  EXPECT_EQ(world.starts, 2);
  EXPECT_EQ(world.stops, 1);
}

TEST(LoadMeter, gives_up_on_a_load_that_does_no_work) {
  World world;
  world.units_per_second = 0;
  LoadMeter meter(std::make_unique<Source>(world), world.times());
  try {
    meter.start();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("has not begun"));
  }
  EXPECT_NEAR(world.now_s, 1005, 0.1);
}

TEST(LoadMeter, says_nothing_of_a_part_that_took_no_time) {
  World world;
  LoadMeter meter(std::make_unique<Source>(world), world.times());
  meter.start();
  meter.begin();
  EXPECT_EQ(meter.end().together_units_per_second, 0);
}

TEST(LoadOfNone, is_nothing) {
  EXPECT_EQ(make_load(Load::none, 0), nullptr);
}

}  // namespace
}  // namespace gdrbench::measure
