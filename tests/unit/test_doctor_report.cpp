#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "doctor/diagnosis.hpp"
#include "doctor/report.hpp"
#include "gdrbench/error.hpp"
#include "report/doctor_text.hpp"
#include "synthetic/healthy.hpp"
#include "unit/synthetic_facts.hpp"

namespace gdrbench::doctor {
namespace {

using testing::HasSubstr;
using testing::Not;

// A check of this layer that always finds its one cause, of this verdict, on this subject.
template <Verdict verdict>
constexpr Cause example_causes[] = {{"cause", verdict, "It is so.", "fix {}"}};

template <Verdict verdict>
Check example_check(std::string_view name, Layer layer) {
  return {.name = name,
          .question = "Is it so?",
          .looks_at = "nothing",
          .layer = layer,
          .causes = example_causes<verdict>,
          .run = [](const Check& self, const Facts&) {
            return std::vector<Finding>{find(self, "cause", "mlx5_0", {{"/sys/x", "1"}})};
          }};
}

Finding example_finding(Verdict verdict, const std::string& check, const std::string& subject = "") {
  Finding finding;
  finding.check = check;
  finding.cause = "cause";
  finding.verdict = verdict;
  finding.subject = subject;
  finding.text = "It is so.";
  finding.fix = "do this";
  finding.risk = "little";
  return finding;
}

Facts nothing() {
  Facts facts;
  facts.root = topology::Root("/nonexistent");
  return facts;
}

Report report_of(std::vector<Finding> findings) {
  Report report;
  report.ends.push_back({.host = "node-a",
                         .source = "this machine",
                         .summary = "gdr: works",
                         .findings = std::move(findings),
                         .probes = {},
                         .not_applicable = {"acs"}});
  return report;
}

std::vector<Finding> findings_with(const std::vector<ProbeResult>& probes, bool without_peermem) {
  synthetic::Machine machine = synthetic::dgx();
  if (without_peermem) machine.gpu("0000:1b:00.0").gpu_direct_rdma = false;
  machine.answers.probes = probes;
  const TestFolder folder;
  machine.write(folder.path());
  return run_checks(facts_in(folder.path(), machine.answers), select_checks({}));
}

TEST(SelectChecks, names_those_that_exist_for_one_that_does_not) {
  EXPECT_EQ(select_checks({}).size(), checks().size());
  ASSERT_EQ(select_checks({"peermem"}).size(), 1U);
  try {
    select_checks({"peermem", "nosuch"});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(),
                testing::AllOf(HasSubstr("'nosuch'"), HasSubstr("peermem"), HasSubstr("probe_transfer")));
  }
}

TEST(RunChecks, tells_the_deepest_layer_first_and_then_the_worst) {
  // By the layers of checks that exist.
  synthetic::Machine machine = synthetic::dgx();
  machine.answers.probes = {
      {.what = "ask cuda", .device = "", .gpu = "", .outcome = "failed", .text = "refused"},
      {.what = "ask verbs", .device = "mlx5_0", .gpu = "", .outcome = "crashed", .text = "SIGSEGV"},
      {.what = "register host", .device = "mlx5_0", .gpu = "", .outcome = "failed", .text = "ENOMEM"}};
  const TestFolder folder;
  machine.write(folder.path());
  const auto findings = run_checks(facts_in(folder.path(), machine.answers),
                                   select_checks({"probe_registration", "driver_answers"}));
  ASSERT_EQ(findings.size(), 3U);
  EXPECT_EQ(findings[0].cause, "crashed");
  EXPECT_EQ(findings[1].cause, "failed");
  EXPECT_EQ(findings[2].check, "probe_registration");
}

TEST(RunChecks, tells_a_check_that_throws_as_unknown) {
  Check throwing = example_check<Verdict::ok>("throwing", Layer::port);
  throwing.run = [](const Check&, const Facts&) -> std::vector<Finding> { throw std::runtime_error("odd"); };
  const Check* const list[] = {&throwing};
  const auto findings = run_checks(nothing(), list);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].verdict, Verdict::unknown);
  EXPECT_THAT(findings[0].text, HasSubstr("odd"));
  EXPECT_FALSE(findings[0].fix.empty());
}

TEST(RunChecks, a_failed_probe_follows_from_the_finding_that_explains_it) {
  const std::vector<ProbeResult> probes = {
      {.what = "register cuda peermem",
       .device = "mlx5_0",
       .gpu = "0000:1b:00.0",
       .outcome = "failed",
       .text = "EFAULT"},
      {.what = "register host", .device = "mlx5_0", .gpu = "", .outcome = "failed", .text = "ENOMEM"},
      {.what = "transfer gdr write forward",
       .device = "mlx5_0",
       .gpu = "0000:1b:00.0",
       .outcome = "failed",
       .text = "x"},
      {.what = "transfer tcp write forward",
       .device = "",
       .gpu = "",
       .outcome = "failed",
       .text = "refused"}};
  std::map<std::string, std::string> by_cause;
  for (const Finding& finding : findings_with(probes, true))
    if (finding.check.starts_with("probe_"))
      by_cause[finding.cause + " " + finding.subject] = finding.explained_by;
  EXPECT_THAT(by_cause.at("gpu_fails mlx5_0 and GPU 0000:1b:00.0"), HasSubstr("gpu_unsupported"));
  EXPECT_THAT(by_cause.at("fails gdr"), HasSubstr("gpu_unsupported"));
  EXPECT_EQ(by_cause.at("host_fails mlx5_0 and host memory"), "") << "no GPU keeps host memory from a NIC";
  EXPECT_EQ(by_cause.at("fails tcp"), "");
  for (const Finding& finding : findings_with(probes, false))
    EXPECT_EQ(finding.explained_by, "") << finding.check;
}

TEST(Summary, says_whether_gdr_works_and_if_not_why) {
  const TestFolder folder;
  synthetic::Machine machine = synthetic::dgx();
  machine.write(folder.path());
  Facts facts = facts_in(folder.path(), machine.answers);
  EXPECT_THAT(summarise(facts, {}), HasSubstr("no obstacle was found"));
  EXPECT_THAT(summarise(facts, {example_finding(Verdict::warn, "a"), example_finding(Verdict::unknown, "b")}),
              testing::AllOf(HasSubstr("1 could make it slow"), HasSubstr("1 could not be seen")));
  EXPECT_THAT(summarise(facts, {}), HasSubstr("it was not tried"));
  const std::vector<Finding> faults = {example_finding(Verdict::warn, "a"),
                                       example_finding(Verdict::fail, "b", "mlx5_0"),
                                       example_finding(Verdict::fail, "c")};
  EXPECT_THAT(summarise(facts, faults), HasSubstr("gdr: may be missing because of b, mlx5_0: It is so."))
      << "another NIC may do without it";
  EXPECT_THAT(summarise(facts, {example_finding(Verdict::fail, "c")}),
              HasSubstr("gdr: missing because of c: "));
  facts.answers.probes = {
      {.what = "transfer gdr write forward", .device = "", .gpu = "", .outcome = "failed", .text = ""}};
  EXPECT_THAT(summarise(facts, faults), HasSubstr("gdr: missing because of b, mlx5_0: It is so."));
  facts.answers.probes.clear();
  for (const char* what : {"transfer gdr write forward", "transfer gdr read reverse"})
    facts.answers.probes.push_back(
        {.what = what, .device = "mlx5_0", .gpu = "0000:1b:00.0", .outcome = "passed", .text = ""});
  EXPECT_EQ(summarise(facts, {}), "gdr: works");
  EXPECT_THAT(summarise(facts, faults),
              HasSubstr("gdr: works for 4 KiB; other transfers may fail because of b"));
  EXPECT_THAT(summarise(nothing(), {}), HasSubstr("not possible here"));
}

TEST(ExitStatusOfReport, is_one_for_a_failure_and_under_strict_for_a_warning) {
  for (const Verdict verdict : {Verdict::ok, Verdict::info, Verdict::unknown, Verdict::warn, Verdict::fail}) {
    Report report = report_of({example_finding(Verdict::ok, "a"), example_finding(verdict, "b")});
    EXPECT_EQ(exit_status(report), verdict == Verdict::fail ? ExitStatus::failed : ExitStatus::done);
    report.strict = true;
    EXPECT_EQ(exit_status(report), verdict >= Verdict::warn ? ExitStatus::failed : ExitStatus::done);
  }
  Report report = report_of({});
  report.between.push_back(example_finding(Verdict::fail, "ends"));
  EXPECT_EQ(exit_status(report), ExitStatus::failed);
}

TEST(DoctorText, shows_what_is_wrong_with_evidence_fix_and_risk_and_the_rest_in_a_line) {
  Finding finding = example_finding(Verdict::fail, "peermem", "mlx5_0");
  finding.evidence = {{"/sys/module/x", "absent"}};
  const std::string text = report::doctor_text(report_of({finding, example_finding(Verdict::ok, "mtu")}), {});
  EXPECT_THAT(text, HasSubstr("node-a (this machine): 1 fail, 1 ok"));
  EXPECT_THAT(text, HasSubstr("FAIL     peermem · mlx5_0\n         It is so.\n"));
  EXPECT_THAT(text, HasSubstr("seen  /sys/module/x: absent"));
  EXPECT_THAT(text, HasSubstr("fix   do this"));
  EXPECT_THAT(text, HasSubstr("risk  little"));
  EXPECT_THAT(text, HasSubstr("OK       mtu\n"));
  EXPECT_THAT(report::doctor_text(report_of({example_finding(Verdict::ok, "mtu")}), {.verbose = true}),
              HasSubstr("OK       mtu\n         It is so."));
}

TEST(DoctorText, shows_what_a_probe_follows_from_in_place_of_its_own_fix) {
  Finding finding = example_finding(Verdict::fail, "probe_transfer", "gdr");
  finding.explained_by = "peermem/not_loaded";
  const std::string text = report::doctor_text(report_of({finding}), {});
  EXPECT_THAT(text, HasSubstr("Follows from peermem/not_loaded."));
  EXPECT_THAT(text, Not(HasSubstr("do this")));
}

TEST(DoctorText, keeps_to_its_width_but_for_what_is_copied_into_a_shell) {
  Finding finding = example_finding(Verdict::warn, "mtu");
  for (int i = 0; i < 60; ++i) finding.text += " word";
  finding.fix = std::string(150, 'x');
  std::istringstream lines(report::doctor_text(report_of({finding}), {.width = 60}));
  for (std::string line; std::getline(lines, line);)
    if (line.find("xxx") == std::string::npos) {
      EXPECT_LE(line.size(), 60U) << line;
    }
}

TEST(DoctorText, tells_one_fault_of_several_devices_in_one_block) {
  std::vector<Finding> findings;
  for (const char* gpu : {"GPU 0", "GPU 1", "GPU 2"}) {
    findings.push_back(example_finding(Verdict::fail, "bar1", gpu));
    findings.back().evidence = {
        {std::string("/sys/") + gpu, "32 MiB"}, {"to be registered", "64 MiB"}, {"more", gpu}};
  }
  findings.push_back(example_finding(Verdict::fail, "bar1", "GPU 3"));
  findings.back().fix = "do that";
  const std::string text = report::doctor_text(report_of(findings), {});
  EXPECT_THAT(text, HasSubstr("4 fail\n"));
  EXPECT_THAT(text, HasSubstr("FAIL     bar1 · GPU 0, GPU 1, GPU 2\n         It is so.\n"
                              "         seen  /sys/GPU 0: 32 MiB\n"
                              "         seen  /sys/GPU 1: 32 MiB\n"
                              "         seen  /sys/GPU 2: 32 MiB\n"
                              "         seen  to be registered: 64 MiB\n"
                              "               and 3 more; --verbose shows them\n"
                              "         fix   do this\n"));
  EXPECT_THAT(text, HasSubstr("FAIL     bar1 · GPU 3\n")) << "its fix is another";
  EXPECT_THAT(report::doctor_text(report_of(findings), {.verbose = true}), HasSubstr("seen  more: GPU 2\n"));
  EXPECT_EQ(to_json(report_of(findings)).at("ends").at(0).at("findings").size(), 4U);
}

TEST(DoctorText, wraps_the_subjects_of_a_block) {
  std::vector<Finding> findings;
  for (int gpu = 0; gpu < 8; ++gpu)
    findings.push_back(
        example_finding(Verdict::warn, "distance", "GPU 0000:1" + std::to_string(gpu) + ":00.0"));
  for (const bool colours : {false, true}) {
    const std::string text = report::doctor_text(report_of(findings), {.width = 80, .colours = colours});
    EXPECT_THAT(text, HasSubstr("distance · GPU 0000:10:00.0, GPU 0000:11:00.0, GPU 0000:12:00.0,\n"
                                "         GPU 0000:13:00.0, "));
  }
  Finding finding = example_finding(Verdict::warn, "registration", "GPU 0000:10:00.0 with");
  for (int nic = 0; nic < 12; ++nic) finding.subject += " mlx5_" + std::to_string(nic);
  EXPECT_THAT(report::doctor_text(report_of({finding}), {.width = 60}),
              HasSubstr("registration · GPU 0000:10:00.0 with mlx5_0 mlx5_1\n         mlx5_2 "));
}

TEST(DoctorText, tells_a_long_value_whole_and_ends_a_longer_one_after_a_word) {
  Finding finding = example_finding(Verdict::fail, "peermem");
  std::string value;
  for (int i = 0; i < 30; ++i) value += "word" + std::to_string(i) + " ";
  finding.evidence = {{"/sys/x", value + "end"}};
  EXPECT_THAT(report::doctor_text(report_of({finding}), {}), HasSubstr("word29 end\n"));
  for (int i = 30; i < 99; ++i) value += "word" + std::to_string(i) + " ";
  finding.evidence = {{"/sys/x", value + "end"}};
  const std::string text = report::doctor_text(report_of({finding}), {});
  EXPECT_THAT(text, testing::ContainsRegex("word[0-9][0-9] …\n"));
  EXPECT_THAT(text, Not(HasSubstr("end")));
  EXPECT_THAT(report::doctor_text(report_of({finding}), {.verbose = true}), HasSubstr("end"));
}

TEST(DoctorText, lets_nothing_that_was_read_steer_a_terminal) {
  Finding finding = example_finding(Verdict::fail, "peermem", "mlx5_0\x1b[2J");
  finding.evidence = {{"/sys/\x1b]0;title\x07", "one\ntwo\x1b[31m\xff"}};
  finding.text = "Text \x9b";
  for (const bool verbose : {false, true}) {
    const std::string text = report::doctor_text(report_of({finding}), {.verbose = verbose});
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
    EXPECT_THAT(text, Not(HasSubstr("\x07")));
    EXPECT_THAT(text, HasSubstr("one / two"));
  }
  EXPECT_THAT(report::doctor_text(report_of({example_finding(Verdict::fail, "peermem")}), {.colours = true}),
              HasSubstr("\x1b[31;1m"));
}

TEST(DoctorJson, has_a_report_whatever_bytes_were_read) {
  Finding finding = example_finding(Verdict::fail, "peermem");
  finding.evidence = {{"/sys/x", "\xff\x01"}};
  const auto document = to_json(report_of({finding}));
  EXPECT_EQ(document.at("verdict"), "fail");
  EXPECT_EQ(document.at("exit_status"), 1);
  EXPECT_EQ(document.at("ends").at(0).at("counts").at("fail"), 1);
  EXPECT_NO_THROW(document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

TEST(Explanation, is_what_docs_troubleshooting_holds) {
  std::ostringstream kept;
  kept << std::ifstream(GDRBENCH_SOURCE_DIR "/docs/troubleshooting.md").rdbuf();
  EXPECT_TRUE(kept.str() == explain_checks(checks()))
      << "renew it: gdrbench doctor --explain > docs/troubleshooting.md";
  for (const Check* check : checks())
    for (const Cause& cause : check->causes)
      EXPECT_THAT(kept.str(), HasSubstr(std::string(cause.text))) << check->name << "/" << cause.id;
}

// Facts are below checks, probes and record, which do not know each other.
TEST(Rooms, include_what_is_below_them_only) {
  const std::filesystem::path top = GDRBENCH_SOURCE_DIR "/src/doctor";
  const std::map<std::string, std::vector<std::string>> allowed = {
      {"facts", {"doctor/facts/"}},
      {"checks", {"doctor/facts/", "doctor/checks/", "doctor/check.hpp"}},
      {"probes", {"doctor/facts/", "doctor/probes/"}},
      {"record", {"doctor/facts/", "doctor/record/"}}};
  for (const auto& [room, headers] : allowed)
    for (const auto& file : std::filesystem::directory_iterator(top / room)) {
      std::istringstream lines(content_of(file.path()));
      for (std::string line; std::getline(lines, line);)
        if (constexpr std::string_view include = "#include \"doctor/"; line.starts_with(include)) {
          EXPECT_TRUE(std::any_of(
              headers.begin(), headers.end(),
              [&](const std::string& header) { return line.find('"' + header) != std::string::npos; }))
              << file.path() << ": " << line;
        }
    }
}

}  // namespace
}  // namespace gdrbench::doctor
