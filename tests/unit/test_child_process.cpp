#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <stdexcept>

#include "doctor/facts/child_process.hpp"

namespace gdrbench::doctor {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::HasSubstr;

constexpr auto generous_timeout = 20s;

// Ends by the signal also where a sanitizer has its own handler.
[[noreturn]] void die(int number) {
  std::signal(number, SIG_DFL);
  std::raise(number);
  _exit(1);
}

TEST(ChildProcess, answers_come_back_in_order) {
  const ChildResult run = run_in_child(
      [](const ChildReporter& report) {
        report.answer(1);
        report.answer({{"two", "\xff and \n"}});
      },
      generous_timeout);
  EXPECT_EQ(run.end, ChildEnd::finished);
  ASSERT_EQ(run.answers.size(), 2U);
  EXPECT_EQ(run.answers[0], 1);
  EXPECT_THAT(run.answers[1].at("two").get<std::string>(), HasSubstr(" and \n"));
}

TEST(ChildProcess, a_large_answer_comes_back_whole) {
  const std::string large(8 << 20, 'x');
  const ChildResult run =
      run_in_child([&](const ChildReporter& report) { report.answer(large); }, generous_timeout);
  ASSERT_EQ(run.answers.size(), 1U);
  EXPECT_EQ(run.answers[0].get<std::string>().size(), large.size());
}

TEST(ChildProcess, an_exception_is_a_failure_with_its_text) {
  const ChildResult run =
      run_in_child([](const ChildReporter&) { throw std::runtime_error("no such thing"); }, generous_timeout);
  EXPECT_EQ(run.end, ChildEnd::failed);
  EXPECT_EQ(run.text, "no such thing");
}

TEST(ChildProcess, a_crash_is_told_by_its_signal_and_keeps_the_answers_before_it) {
  for (const auto& [number, name] :
       {std::pair{SIGSEGV, "SIGSEGV"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"}}) {
    const ChildResult run = run_in_child(
        [number = number](const ChildReporter& report) {
          report.answer("before");
          die(number);
        },
        generous_timeout);
    EXPECT_EQ(run.end, ChildEnd::crashed);
    EXPECT_EQ(run.text, name);
    EXPECT_EQ(run.answers.size(), 1U);
  }
}

TEST(ChildProcess, work_that_ends_the_process_has_crashed_whatever_status_it_gives) {
  for (const int status : {0, 3}) {
    const ChildResult run = run_in_child([status](const ChildReporter&) { _exit(status); }, generous_timeout);
    EXPECT_EQ(run.end, ChildEnd::crashed);
    EXPECT_THAT(run.text, HasSubstr("exit status " + std::to_string(status)));
  }
}

TEST(ChildProcess, work_that_hangs_is_ended_in_time_though_it_ignores_signals) {
  const auto start = std::chrono::steady_clock::now();
  const ChildResult run = run_in_child(
      [](const ChildReporter& report) {
        for (const int number : {SIGTERM, SIGINT, SIGHUP}) std::signal(number, SIG_IGN);
        report.answer(getpid());
        while (true) pause();
      },
      200ms);
  EXPECT_EQ(run.end, ChildEnd::timed_out);
  EXPECT_THAT(run.text, HasSubstr("no answer within 0.2 s"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
  ASSERT_EQ(run.answers.size(), 1U);
  EXPECT_NE(kill(run.answers[0].get<pid_t>(), 0), 0) << "it is still there";
}

TEST(ChildProcess, children_of_the_work_end_with_it_and_hold_up_nothing) {
  const auto start = std::chrono::steady_clock::now();
  const ChildResult run = run_in_child(
      [](const ChildReporter& report) {
        const pid_t child = fork();
        if (child == 0)
          while (true) pause();
        report.answer(child);
        die(SIGSEGV);
      },
      generous_timeout);
  EXPECT_EQ(run.end, ChildEnd::crashed);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
  ASSERT_EQ(run.answers.size(), 1U);
  // It belongs to init now, which may take a moment to reap it.
  const pid_t child = run.answers[0].get<pid_t>();
  for (int i = 0; i < 100 && kill(child, 0) == 0; ++i) usleep(20'000);
  EXPECT_NE(kill(child, 0), 0) << "it is still there";
}

TEST(ChildProcess, what_is_no_answer_is_told_as_such) {
  for (const std::string garbage : {"\x01\x02 segfault at 0\n", "[1]\n", "{\"other\": 1}\n", "\n"}) {
    const ChildResult run = run_in_child(
        [&](const ChildReporter& report) {
          EXPECT_EQ(write(report.fd(), garbage.data(), garbage.size()), static_cast<ssize_t>(garbage.size()));
        },
        generous_timeout);
    EXPECT_EQ(run.end, ChildEnd::garbled) << garbage;
    EXPECT_EQ(outcome(run.end), "failed");
  }
}

TEST(ChildProcess, a_program_that_is_not_there_or_speaks_otherwise_has_no_answer) {
  EXPECT_EQ(run_program({"/nonexistent"}, generous_timeout).end, ChildEnd::crashed);
  EXPECT_EQ(run_program({"/bin/echo", "hello"}, generous_timeout).end, ChildEnd::garbled);
  const ChildResult run =
      run_program({"/bin/sh", "-c", R"(echo '{"answer": 7}'; echo '{"finished": true}')"}, generous_timeout);
  EXPECT_EQ(run.end, ChildEnd::finished);
  EXPECT_THAT(run.answers, testing::ElementsAre(json(7)));
}

TEST(Steps, go_on_behind_one_that_crashes_hangs_or_throws) {
  const std::vector<std::function<json()>> steps = {
      [] { return json("first"); },
      []() -> json { die(SIGSEGV); },
      []() -> json { throw std::runtime_error("refused"); },
      []() -> json {
        while (true) pause();
      },
      []() -> json { throw EndOfProcess{"and then another"}; },
      [] { return json("last"); },
  };
  const std::vector<StepResult> results = run_steps(steps, 2s);
  ASSERT_EQ(results.size(), steps.size());
  EXPECT_EQ(results[0].answer, "first");
  EXPECT_EQ(results[1].end, ChildEnd::crashed);
  EXPECT_EQ(results[2].end, ChildEnd::failed);
  EXPECT_EQ(results[2].text, "refused");
  EXPECT_EQ(results[3].end, ChildEnd::timed_out);
  EXPECT_EQ(results[4].answer, "and then another");
  EXPECT_EQ(results[5].end, ChildEnd::finished);
  EXPECT_EQ(results[5].answer, "last");
}

}  // namespace
}  // namespace gdrbench::doctor
