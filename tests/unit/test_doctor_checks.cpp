#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "doctor/check.hpp"
#include "doctor/facts/host.hpp"
#include "synthetic/faults.hpp"
#include "synthetic/healthy.hpp"
#include "topology/pci_function.hpp"
#include "unit/synthetic_facts.hpp"

namespace gdrbench::doctor {
namespace {

class SyntheticMachine : public testing::TestWithParam<synthetic::Scenario> {};

TEST_P(SyntheticMachine, has_these_findings_and_no_other) {
  const TestFolder folder;
  const synthetic::Machine machine = GetParam().make();
  machine.write(folder.path());
  EXPECT_EQ(findings_of(facts_in(folder.path(), machine.answers)), GetParam().findings);
}

INSTANTIATE_TEST_SUITE_P(All, SyntheticMachine, testing::ValuesIn(synthetic::all_scenarios()),
                         [](const auto& test) { return test.param.name; });

TEST(Checks, have_a_machine_for_every_cause) {
  std::set<std::string> shown;
  for (const synthetic::Scenario& known : synthetic::all_scenarios())
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

std::string evidence_text(const Finding& finding) {
  std::string text;
  for (const Evidence& one : finding.evidence) text += one.source + "=" + one.value + "\n";
  return text;
}

TEST(Bar1, of_256_mib_is_too_small_for_512_mib) {
  synthetic::Machine machine = synthetic::dgx();
  synthetic::set_bar1(machine, "0000:1b:00.0", 0xd0000000, 0xdfffffff);
  SyntheticFacts facts(machine);
  facts->request_bytes = std::uint64_t{512} << 20;
  const std::vector<Finding> findings = findings_of("bar1", *facts);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].cause, "too_small");
  EXPECT_EQ(findings[0].verdict, Verdict::fail);
  EXPECT_NE(evidence_text(findings[0]).find("256 MiB"), std::string::npos) << evidence_text(findings[0]);
  EXPECT_EQ(findings[1].verdict, Verdict::ok);
}

TEST(Bar1, is_the_third_line_where_the_first_window_is_64_bit) {
  synthetic::Machine machine = synthetic::dgx();
  machine.tree.file(machine.folder_of("0000:1b:00.0") + "/resource",
                    "0x000038c002000000 0x000038c002ffffff 0x000000000014220c\n"
                    "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
                    "0x00002000d0000000 0x00002000dfffffff 0x000000000014220c");
  SyntheticFacts facts(machine);
  facts->request_bytes = std::uint64_t{512} << 20;
  EXPECT_EQ(findings_of("bar1", *facts).front().cause, "too_small");
}

TEST(Acs, names_each_bridge_with_its_register) {
  synthetic::Machine machine = synthetic::dgx();
  machine.change_config("0000:19:02.0", [](synthetic::PciConfig& config) { config.acs_control = 0x1d; });
  const std::vector<Finding> findings = findings_of("acs", machine);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].subject, "0000:19:02.0");
  EXPECT_NE(findings[0].fix.find("setpci -s 0000:19:02.0 ECAP_ACS+6.w=0:2c"), std::string::npos);
  EXPECT_NE(evidence_text(findings[0]).find("ACS control at 0x106: 0x001d"), std::string::npos)
      << evidence_text(findings[0]);
}

// Source validation and translation blocking, which divert nothing.
TEST(Acs, may_be_on_without_redirecting) {
  synthetic::Machine machine = synthetic::dgx();
  machine.change_config("0000:19:02.0", [](synthetic::PciConfig& config) { config.acs_control = 0x43; });
  EXPECT_EQ(findings_of("acs", machine).front().verdict, Verdict::ok);
}

TEST(Registration, is_one_finding_for_all_pairs_and_names_them_where_they_differ) {
  synthetic::Machine machine = synthetic::dgx();
  synthetic::remove_peermem(machine);
  machine.gpu("0000:bb:00.0").dmabuf = false;
  const std::vector<Finding> findings = findings_of("registration", machine);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].verdict, Verdict::ok);
  EXPECT_EQ(findings[1].cause, "peermem_missing");
  EXPECT_EQ(findings[1].subject, "GPU 0000:bb:00.0 with mlx5_0, GPU 0000:bb:00.0 with mlx5_1");
  EXPECT_NE(evidence_text(findings[1]).find("load nvidia-peermem"), std::string::npos);
}

// It may be the near one once it has a driver.
TEST(Distance, counts_a_nic_without_a_driver) {
  synthetic::Machine machine = synthetic::two_socket();
  synthetic::make_plain_nic(machine, "0000:97:00.0", "mlx5_1");
  EXPECT_EQ(findings_of("distance", machine).back().cause, "sockets");
  machine.tree.remove(machine.folder_of("0000:97:00.0") + "/driver");
  EXPECT_EQ(findings_of("distance", machine).back().cause, "host_bridge");
}

TEST(PciConfig, is_absent_where_libpci_has_nothing_to_read) {
  synthetic::Machine machine = synthetic::dgx();
  const std::string folder = machine.folder_of("0000:19:02.0");
  machine.tree.raw(folder + "/config", std::string(4096, '\xff'));
  machine.tree.raw(machine.folder_of("0000:19:01.0") + "/config", "");
  const SyntheticFacts facts(machine);
  const topology::Root root(facts.folder());
  for (const char* address : {"0000:19:02.0", "0000:19:01.0", "0000:ff:1f.7", "nonsense", ""}) {
    const topology::PciConfig config = topology::read_pci_config(root, address);
    EXPECT_FALSE(config.access_control) << address;
    EXPECT_FALSE(config.device_control) << address;
  }
  const topology::PciConfig none = topology::read_pci_config(topology::Root("/nowhere"), "0000:19:02.0");
  EXPECT_EQ(none.state, topology::FileState::absent);
}

// libpci keeps paths in a kibibyte, and ends the process by itself where one is longer.
TEST(PciConfig, is_absent_below_a_folder_with_too_long_a_name) {
  std::filesystem::path deep =
      std::filesystem::temp_directory_path() / fmt::format("gdrbench-deep-{}", getpid());
  const std::filesystem::path top = deep;
  for (int i = 0; i < 5; ++i) deep /= std::string(220, 'd');
  const std::filesystem::path function = deep / "sys/bus/pci/devices/0000:19:02.0";
  std::filesystem::create_directories(function);
  std::ofstream(function / "config", std::ios::binary) << synthetic::config_space({.acs_control = 0x1d});
  EXPECT_FALSE(topology::read_pci_config(topology::Root(deep), "0000:19:02.0").access_control);
  std::filesystem::remove_all(top);
}

TEST(Bar1, without_an_address_still_has_a_size_in_sysfs) {
  synthetic::Machine machine = synthetic::dgx();
  machine.tree.file(machine.folder_of("0000:1b:00.0") + "/resource",
                    "0x00000000cf000000 0x00000000cfffffff 0x0000000000040200\n"
                    "0x0000000000000000 0x0000003fffffffff 0x000000002014220c");
  EXPECT_EQ(findings_of("bar1", machine).front().cause, "unassigned");
}

// A capability that points to itself.
TEST(PciConfig, ends_where_capabilities_go_in_a_circle) {
  synthetic::Machine machine = synthetic::dgx();
  std::string bytes = synthetic::config_space({.is_bridge = true, .acs_control = 0});
  bytes[0x41] = 0x40;
  bytes[0x103] = 0x10;
  machine.tree.raw(machine.folder_of("0000:19:02.0") + "/config", bytes);
  const SyntheticFacts facts(machine);
  EXPECT_TRUE(topology::read_pci_config(topology::Root(facts.folder()), "0000:19:02.0").access_control);
}

TEST(Host, knows_versions_by_their_first_two_numbers) {
  const auto is = [](std::string_view text, int major, int minor) {
    const std::optional<Version> version = version_in(text);
    return version && version->major == major && version->minor == minor;
  };
  EXPECT_TRUE(is("5.12.0-rc1", 5, 12));
  EXPECT_TRUE(is("580.95.05", 580, 95));
  EXPECT_TRUE(is("6", 6, 0));
  EXPECT_FALSE(version_in("x86_64"));
  EXPECT_FALSE(version_in(""));
  EXPECT_LT((Version{5, 4}), (Version{5, 12}));
}

TEST(Host, tells_metal_from_guests_of_the_same_maker) {
  synthetic::Machine machine = synthetic::dgx();
  machine.tree.file("sys/class/dmi/id/sys_vendor", "Amazon EC2");
  machine.tree.file("sys/class/dmi/id/product_name", "p5.48xlarge");
  EXPECT_TRUE(is_virtual_machine(SyntheticFacts(machine)->root));
  machine.tree.file("sys/class/dmi/id/product_name", "m7i.metal-24xl");
  EXPECT_FALSE(is_virtual_machine(SyntheticFacts(machine)->root));
}

}  // namespace
}  // namespace gdrbench::doctor
