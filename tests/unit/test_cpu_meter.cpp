#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "measure/cpu_meter.hpp"

namespace gdrbench::measure {
namespace {

namespace fs = std::filesystem;

class CpuMeterTest : public ::testing::Test {
 protected:
  CpuMeterTest() { fs::create_directories(proc_); }
  ~CpuMeterTest() override { fs::remove_all(proc_); }
  void write_stat(const std::string& text) const { std::ofstream(proc_ / "stat") << text; }

  fs::path proc_ =
      fs::temp_directory_path() / ("gdrbench-proc-" + std::to_string(getpid()) + "-" +
                                   ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

void spin(std::chrono::milliseconds span) {
  const auto end = std::chrono::steady_clock::now() + span;
  while (std::chrono::steady_clock::now() < end) {
  }
}

TEST_F(CpuMeterTest, host_times_are_the_irq_and_softirq_ticks_between_start_and_stop) {
  write_stat("cpu  100 2 300 4000 5 60 700 0 0 0\ncpu0 100 2 300 4000 5 60 700 0 0 0\n");
  CpuMeter meter(CpuMeter::Scope::process, proc_);
  meter.start();
  write_stat("cpu  900 9 900 9000 9 72 730 0 0 0\ncpu0 1 1 1 1 1 1 1 0 0 0\n");
  const CpuUsage usage = meter.stop();
  const auto ticks_per_s = static_cast<double>(sysconf(_SC_CLK_TCK));
  EXPECT_TRUE(meter.host_times_known());
  EXPECT_DOUBLE_EQ(usage.irq_s, 12 / ticks_per_s);
  EXPECT_DOUBLE_EQ(usage.softirq_s, 30 / ticks_per_s);
}

TEST_F(CpuMeterTest, missing_or_strange_proc_stat_leaves_zeros_and_says_unknown) {
  for (const std::string text : {"", "cpu 1 2 3\n", "intr 1 2 3 4 5 6 7 8\n"}) {
    if (text.empty())
      fs::remove(proc_ / "stat");
    else
      write_stat(text);
    CpuMeter meter(CpuMeter::Scope::process, proc_);
    meter.start();
    const CpuUsage usage = meter.stop();
    EXPECT_FALSE(meter.host_times_known()) << text;
    EXPECT_EQ(usage.irq_s, 0);
    EXPECT_EQ(usage.softirq_s, 0);
    EXPECT_GE(usage.elapsed_s, 0);
  }
}

TEST_F(CpuMeterTest, counters_that_step_back_count_as_nothing) {
  write_stat("cpu  1 1 1 1 1 50 50 0 0 0\n");
  CpuMeter meter(CpuMeter::Scope::process, proc_);
  meter.start();
  write_stat("cpu  1 1 1 1 1 49 48 0 0 0\n");
  const CpuUsage usage = meter.stop();
  EXPECT_EQ(usage.irq_s, 0);
  EXPECT_EQ(usage.softirq_s, 0);
}

TEST_F(CpuMeterTest, work_of_another_thread_counts_for_the_process_and_not_for_the_measuring_thread) {
  CpuMeter meter;
  meter.start();
  std::thread other(spin, std::chrono::milliseconds(100));
  other.join();
  const CpuUsage usage = meter.stop();
  EXPECT_GT(usage.user_s + usage.system_s, 0.01);
  EXPECT_LT(usage.thread_s, (usage.user_s + usage.system_s) / 2);
  EXPECT_GE(usage.elapsed_s, 0.1);
}

TEST_F(CpuMeterTest, work_of_the_measuring_thread_counts_for_both) {
  CpuMeter meter;
  meter.start();
  spin(std::chrono::milliseconds(100));
  const CpuUsage usage = meter.stop();
  EXPECT_GT(usage.thread_s, 0.01);
  EXPECT_LE(usage.thread_s, usage.elapsed_s + 0.02);
  EXPECT_NEAR(usage.thread_s, usage.user_s + usage.system_s, 0.02);
}

TEST_F(CpuMeterTest, sleeping_costs_time_and_no_cpu) {
  CpuMeter meter;
  meter.start();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const CpuUsage usage = meter.stop();
  EXPECT_GE(usage.elapsed_s, 0.09);
  EXPECT_LT(usage.thread_s, 0.05);
}

TEST(CpuMeter, of_a_thread_leaves_out_what_others_burn) {
  CpuMeter meter(CpuMeter::Scope::thread);
  meter.start();
  std::thread([] {
    const double until_us = now_us() + 200'000;
    while (now_us() < until_us) {
    }
  }).join();
  const CpuUsage usage = meter.stop();
  EXPECT_LT(usage.user_s + usage.system_s, 0.1);
  EXPECT_DOUBLE_EQ(usage.user_s + usage.system_s, usage.thread_s);
}

}  // namespace
}  // namespace gdrbench::measure
