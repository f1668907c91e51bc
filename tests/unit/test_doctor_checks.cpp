#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "doctor/check.hpp"
#include "machines/faults.hpp"

namespace gdrbench::doctor {
namespace {

namespace fs = std::filesystem;
using machines::Known;

// Beside "ok", "check/cause".
std::set<std::string> findings_of(const machines::Machine& made) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("gdrbench-doctor-{}", getpid());
  made.write(folder);
  const topology::Root root(folder);
  const Facts facts{.root = root, .machine = topology::read_machine(root), .answers = made.answers};
  std::set<std::string> findings;
  for (const Check* check : checks())
    for (const Finding& finding : check->run(*check, facts))
      if (finding.verdict != Verdict::ok) findings.insert(finding.check + "/" + finding.cause);
  fs::remove_all(folder);
  return findings;
}

class KnownMachine : public testing::TestWithParam<Known> {};

TEST_P(KnownMachine, has_these_findings_and_no_other) {
  EXPECT_EQ(findings_of(GetParam().make()), GetParam().findings);
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
