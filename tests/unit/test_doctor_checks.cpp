#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor/check.hpp"
#include "machines/faults.hpp"
#include "unit/machine_folder.hpp"

namespace gdrbench::doctor {
namespace {

using machines::Known;

class KnownMachine : public testing::TestWithParam<Known> {};

TEST_P(KnownMachine, has_these_findings_and_no_other) {
  const TestFolder folder;
  const machines::Machine made = GetParam().make();
  made.write(folder.path());
  EXPECT_EQ(findings_of(facts_in(folder.path(), made.answers)), GetParam().findings);
}

INSTANTIATE_TEST_SUITE_P(All, KnownMachine, testing::ValuesIn(machines::known_machines()),
                         [](const auto& test) { return test.param.name; });

TEST(Checks, have_a_machine_for_every_cause) {
  std::set<std::string> shown;
  for (const Known& known : machines::known_machines())
    shown.insert(known.findings.begin(), known.findings.end());
  for (const Check* check : checks())
    for (const Cause& cause : check->causes)
      if (cause.verdict != Verdict::ok) {
        EXPECT_TRUE(shown.contains(fmt::format("{}/{}", check->name, cause.id)))
            << check->name << "/" << cause.id << " is not shown by any machine";
      }
}

TEST(Checks, say_what_to_do_of_all_that_is_wrong) {
  for (const Check* check : checks())
    for (const Cause& cause : check->causes)
      if (cause.verdict == Verdict::fail || cause.verdict == Verdict::warn ||
          cause.verdict == Verdict::unknown) {
        EXPECT_FALSE(cause.fix.empty()) << check->name << "/" << cause.id;
      }
}

}  // namespace
}  // namespace gdrbench::doctor
