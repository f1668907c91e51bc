#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include "doctor/facts/child_process.hpp"
#include "doctor/record/anonymise.hpp"
#include "doctor/record/record.hpp"
#include "gdrbench/error.hpp"
#include "synthetic/faults.hpp"
#include "synthetic/healthy.hpp"
#include "unit/synthetic_facts.hpp"

namespace gdrbench::doctor {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using synthetic::Scenario;
using testing::HasSubstr;
using Kind = RecordedTree::Kind;

std::set<std::string> findings_of_folder(const fs::path& folder) {
  const topology::Root root(folder);
  const auto document = nlohmann::json::parse(root.read("answers.json", 16 << 20).text, nullptr, false);
  return findings_of(facts_in(folder, answers_from_json(document)));
}

class RecordOf : public testing::TestWithParam<Scenario> {};

TEST_P(RecordOf, has_the_findings_of_the_machine_whoever_its_host_and_users_are) {
  const TestFolder source("source");
  const synthetic::Machine machine = GetParam().make();
  machine.write(source.path());
  const RecordedTree tree = record(topology::Root(source.path()), machine.answers);
  const PrivateNames words{
      .hosts = {"pci", "sys", "dev", "rxe", "vm", "node0", "node1", "net", "eth0", "numa"},
      .users = {"nvidia", "class", "rdma", "mlx5_0", "infiniband", "kernel", "gids", "lib", "modules"}};
  for (const PrivateNames& names : {PrivateNames{}, words}) {
    const TestFolder recorded("recorded");
    anonymise(tree, names).write(recorded.path());
    EXPECT_EQ(findings_of_folder(recorded.path()), GetParam().findings) << names.hosts.size();
  }
}

INSTANTIATE_TEST_SUITE_P(All, RecordOf, testing::ValuesIn(synthetic::all_scenarios()),
                         [](const auto& test) { return test.param.name; });

TEST(Record, holds_no_name_or_address_of_the_machine_in_any_byte) {
  synthetic::Machine machine = synthetic::dgx();
  machine.tree.file("proc/sys/kernel/osrelease", "6.1.0-31-amd64");
  machine.tree.file("proc/version", "Linux version 6.1.0 (alice@secrethost) (gcc 12)");
  machine.tree.file("proc/cmdline", "root=/dev/mapper/secrethost-root ip=10.11.12.13 user=alice iommu=pt");
  const std::string device = machine.tree.target("sys/class/infiniband/mlx5_0");
  machine.tree.file(device + "/node_desc", "secrethost mlx5_0");
  machine.tree.file(device + "/node_guid", "0c42:a103:0012:3456");
  machine.tree.file(device + "/ports/1/gids/4", "fe80:0000:0000:0000:0e42:a1ff:fe12:3456");
  machine.tree.file(device + "/ports/1/gids/5", "0000:0000:0000:0000:0000:ffff:0a0b:0c0d");
  machine.tree.file("sys/class/net/enx0c42a1123456/address", "0c:42:a1:12:34:56");
  machine.tree.file("proc/driver/nvidia/gpus/0000:1b:00.0/information",
                    "Model: H200\nGPU UUID: GPU-8f1a23b4-0000-1111-2222-333344445555");
  machine.add_route("eth0", "000C0B0A", "00FFFFFF");
  machine.tree.file("proc/self/net/route",
                    machine.tree.text("proc/self/net/route") +
                        "\neth0\t00000000\t0D0C0B0A\t0003\t0\t0\t0\t00000000\t0\t0\t0");
  machine.answers.kernel_log = "mlx5_core: secrethost 0c:42:a1:12:34:56 10.11.12.13 name=alice_job";
  machine.answers.probes.push_back({.what = "transfer gdr write forward",
                                    .device = "mlx5_0",
                                    .gpu = "",
                                    .outcome = "failed",
                                    .text = "responder SecretHost:7471 (10.11.12.13)"});
  const TestFolder source("source"), recorded("recorded");
  machine.write(source.path());
  const RecordedTree whole = record(topology::Root(source.path()), machine.answers);
  EXPECT_THAT(whole.entries().at("proc/self/net/route").content,
              testing::AllOf(HasSubstr("eth0\t000C0B0A\t00000000"), testing::Not(HasSubstr("0D0C0B0A"))))
      << "no check asks for gateways";
  const RecordedTree tree = anonymise(whole, {.hosts = {"secrethost"}, .users = {"alice"}});
  tree.write(recorded.path());
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(recorded.path())) {
    std::string bytes = entry.path().lexically_relative(recorded.path()).native() + "\n";
    if (entry.is_symlink())
      bytes += fs::read_symlink(entry.path()).native();
    else if (entry.is_regular_file())
      bytes += content_of(entry.path());
    ++files;
    for (const char* secret :
         {"secrethost", "SecretHost", "alice", "10.11.12.13", "0a0b:0c0d", "0c:42:a1:12:34:56",
          "0c42a1123456", "0e42:a1ff:fe12:3456", "0c42:a103", "8f1a23b4", "0C0B0A"})
      EXPECT_EQ(bytes.find(secret), std::string::npos) << secret << " in " << entry.path();
  }
  EXPECT_GT(files, 200);
  EXPECT_THAT(content_of(recorded.path() / "proc/cmdline"), "iommu=pt\n");
}

TEST(Record, takes_nothing_that_its_owner_wrote_and_no_check_reads) {
  synthetic::Machine machine = synthetic::dgx();
  const std::string device = machine.tree.target("sys/class/infiniband/mlx5_0");
  machine.tree.file("sys/class/net/eth9/address", "0c:42:a1:12:34:56");
  for (const std::string& path :
       {device + "/node_desc", device + "/serial", std::string("sys/class/net/eth9/ifalias"),
        std::string("sys/class/net/eth9/phys_switch_id"), std::string("sys/class/net/eth9/phys_port_id"),
        std::string("sys/class/dmi/id/chassis_version"), std::string("etc/os-release")})
    machine.tree.file(path, "secret words");
  machine.tree.file(device + "/sys_image_guid", "0c42a1030012abcd");
  const TestFolder source("source");
  machine.write(source.path());
  const RecordedTree tree = anonymise(record(topology::Root(source.path()), machine.answers), {});
  for (const auto& [path, entry] : tree.entries()) {
    EXPECT_THAT(entry.content, testing::Not(HasSubstr("secret words"))) << path;
    EXPECT_THAT(entry.content, testing::Not(HasSubstr("0c42a103"))) << path;
  }
  EXPECT_TRUE(tree.entries().contains("sys/class/net/eth9/address"));
}

TEST(Record, has_the_limits_of_groups_under_the_names_that_stand_for_them) {
  synthetic::Machine machine = synthetic::dgx();
  machine.tree.remove("proc/self");
  machine.tree.link("proc/self", "proc/4242");
  machine.tree.file("proc/4242/cgroup", "1:name=secret:/\n0::/system.slice:docker:secret/Secret.scope");
  machine.tree.file("sys/fs/cgroup/system.slice:docker:secret/rdma.max", "mlx5_0 hca_object=100");
  machine.tree.file("sys/fs/cgroup/system.slice:docker:secret/rdma.current", "mlx5_0 hca_object=100");
  const TestFolder source("source"), recorded("recorded");
  machine.write(source.path());
  anonymise(record(topology::Root(source.path()), machine.answers), {}).write(recorded.path());
  EXPECT_EQ(content_of(recorded.path() / "proc/self/cgroup"), "1:name=other:/\n0::/group1/group2\n");
  EXPECT_EQ(content_of(recorded.path() / "sys/fs/cgroup/group1/rdma.max"), "mlx5_0 hca_object=100\n");
  EXPECT_THAT(findings_of_folder(recorded.path()), testing::Contains("rdma_cgroup/exhausted"));
}

TEST(Record, keeps_that_a_file_cannot_be_read) {
  synthetic::Machine machine = synthetic::dgx();
  // As unreadable as a file without permission, also to root.
  machine.tree.link("proc/cmdline", "proc/cmdline");
  const TestFolder source("source"), recorded("recorded");
  machine.write(source.path());
  record(topology::Root(source.path()), machine.answers).write(recorded.path());
  EXPECT_EQ(topology::Root(recorded.path()).read("proc/cmdline").state, topology::FileState::unreadable);
}

TEST(Record, goes_into_no_folder_that_holds_something) {
  const TestFolder folder;
  RecordedTree tree;
  tree.add("sys/x", Kind::file, "1\n");
  tree.write(folder.path());
  EXPECT_THROW(tree.write(folder.path()), UsageError);
  EXPECT_THROW(tree.write(folder.path() / "sys/x"), UsageError);
  EXPECT_THROW(tree.write(folder.path() / "sys/x/below"), Error);
}

TEST(Record, goes_through_no_link_that_leads_nowhere_and_not_into_what_it_records) {
  const TestFolder folder;
  fs::create_directories(folder.path() / "made/sys");
  fs::create_symlink("nosuch", folder.path() / "link");
  fs::create_symlink("made", folder.path() / "other");
  for (const char* name : {"link", "link/"}) try {
      RecordedTree::require_free(folder.path() / name);
      ADD_FAILURE() << name;
    } catch (const UsageError& fault) {
      EXPECT_THAT(fault.what(), HasSubstr("dangling"));
    }
  for (const char* name : {"made", "made/", "made/new", "other/new", "made/../made/new"})
    EXPECT_THROW(RecordedTree::require_apart(folder.path() / name, folder.path() / "made"), UsageError)
        << name;
  for (const char* name : {"made2", "new/below", "made/../new"})
    EXPECT_NO_THROW(RecordedTree::require_apart(folder.path() / name, folder.path() / "made")) << name;
}

TEST(Record, goes_into_an_empty_folder_or_a_new_one_however_it_is_spelt) {
  const TestFolder folder;
  RecordedTree tree;
  tree.add("sys/x", Kind::file, "1\n");
  fs::create_directories(folder.path() / "empty");
  fs::permissions(folder.path() / "empty", fs::perms::owner_all);
  for (const char* name : {"empty", "new/", "above/new"}) {
    tree.write(folder.path() / name);
    EXPECT_EQ(content_of(folder.path() / name / "sys/x"), "1\n") << name;
  }
  EXPECT_EQ(fs::status(folder.path() / "empty").permissions(), fs::perms::owner_all);
}

TEST(Record, leaves_nothing_on_a_full_disk_and_names_the_file_that_has_no_room) {
  for (const bool is_there : {false, true}) {
    const TestFolder folder;
    fs::create_directories(folder.path());
    if (is_there) fs::create_directory(folder.path() / "recorded");
    const ChildResult run = run_in_child(
        [&](const ChildReporter&) {
          std::signal(SIGXFSZ, SIG_IGN);
          const rlimit small{100, 100};
          setrlimit(RLIMIT_FSIZE, &small);
          RecordedTree tree;
          tree.add("sys/first", Kind::file, "1\n");
          tree.add("sys/large", Kind::file, std::string(1000, 'x'));
          tree.write(folder.path() / "recorded");
        },
        20s);
    EXPECT_EQ(run.end, ChildEnd::failed);
    EXPECT_THAT(run.text, testing::AllOf(HasSubstr("recorded/sys/large"), HasSubstr("EFBIG"),
                                         HasSubstr("name a folder")));
    std::vector<fs::path> left;
    for (const auto& entry : fs::recursive_directory_iterator(folder.path())) left.push_back(entry.path());
    EXPECT_EQ(left, is_there ? std::vector{folder.path() / "recorded"} : std::vector<fs::path>{});
  }
}

TEST(RecordedTree, comes_back_from_json_as_it_was) {
  RecordedTree tree;
  tree.add("sys/a/config", Kind::file,
           std::string("\0\xff\x01"
                       "binary",
                       9));
  tree.add("sys/a/text", Kind::file, "text\n");
  tree.add("sys/b", Kind::link, "a");
  tree.add("dev/null", Kind::folder, "");
  const RecordedTree back = tree_from_json(nlohmann::json::parse(to_json(tree).dump()));
  ASSERT_EQ(back.entries().size(), tree.entries().size());
  for (const auto& [path, entry] : tree.entries()) {
    EXPECT_EQ(back.entries().at(path).content, entry.content) << path;
    EXPECT_EQ(back.entries().at(path).kind, entry.kind) << path;
  }
}

TEST(RecordedTree, of_another_machine_stays_in_its_folder) {
  for (const char* text :
       {R"({"files": {"../x": ""}})", R"({"files": {"/etc/x": ""}})", R"({"files": {"a/../../x": ""}})",
        R"({"files": {"": ""}})", R"({"links": {"a": "/etc"}})", R"({"links": {"a": "../.."}})",
        R"({"links": {"a/b": "../../etc"}})", R"({"folders": ["../x"]})", R"({"files": {"a/./b": ""}})",
        R"({"links": {"a": "b"}, "files": {"a/x": ""}})", R"({"files": {"a": "", "a/x": ""}})"})
    EXPECT_THROW(tree_from_json(nlohmann::json::parse(text)), Error) << text;
  for (const char* text : {"[]", "1", "null", R"({"files": 1, "links": [], "folders": {"a": 1}})"})
    EXPECT_TRUE(tree_from_json(nlohmann::json::parse(text)).entries().empty()) << text;
}

}  // namespace
}  // namespace gdrbench::doctor
