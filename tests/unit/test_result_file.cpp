#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "../fixtures/sample_result.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

std::string read(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class ResultFile : public ::testing::Test {
 protected:
  ResultFile() { fs::create_directories(folder_); }
  ~ResultFile() override { fs::remove_all(folder_); }

  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  /// The error that writing gives, which must be a failure and not a usage error.
  static std::string error_of_writing(const fs::path& path, const std::string& content) {
    try {
      write_file_atomically(path, content);
    } catch (const SystemError& error) {
      EXPECT_EQ(error.status(), ExitStatus::failed);
      return error.what();
    }
    return "no error";
  }

  fs::path folder_ =
      fs::temp_directory_path() / ("gdrbench-result-" + std::to_string(getpid()) + "-" +
                                   ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(ResultFile, is_written_whole_into_folders_that_are_made) {
  write_file_atomically(folder_ / "a" / "b" / "out.json", "{}\n");
  EXPECT_EQ(read(folder_ / "a" / "b" / "out.json"), "{}\n");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "a" / "b"), fs::directory_iterator()), 1);
}

TEST_F(ResultFile, replaces_an_older_one_through_a_symbolic_link) {
  write_file_atomically(folder_ / "real.json", "old");
  fs::create_symlink("real.json", folder_ / "link.json");
  write_file_atomically(folder_ / "link.json", "new");
  EXPECT_EQ(read(folder_ / "real.json"), "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link.json"));
  EXPECT_EQ(entries(), 2U);
}

TEST_F(ResultFile, follows_the_umask) {
  const mode_t before = umask(0027);
  write_file_atomically(folder_ / "out.json", "x");
  umask(before);
  EXPECT_EQ(fs::status(folder_ / "out.json").permissions(),
            fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
}

TEST_F(ResultFile, a_full_device_is_an_error_and_the_device_stays) {
  EXPECT_THAT(error_of_writing("/dev/full", "x"),
              AllOf(HasSubstr("/dev/full"), HasSubstr("ENOSPC"), HasSubstr("make room")));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(ResultFile, a_full_file_system_leaves_the_old_file_and_nothing_else) {
  const fs::path mount_point = folder_ / "tiny";
  fs::create_directory(mount_point);
  if (mount("none", mount_point.c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "mounting a tmpfs: " << errno_name(errno) << " (needs CAP_SYS_ADMIN)";
  write_file_atomically(mount_point / "out.json", "old");
  EXPECT_THAT(error_of_writing(mount_point / "out.json", std::string(1 << 20, 'x')), HasSubstr("ENOSPC"));
  EXPECT_EQ(read(mount_point / "out.json"), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(mount_point), fs::directory_iterator()), 1);
  umount(mount_point.c_str());
}

TEST_F(ResultFile, a_write_that_stops_half_way_leaves_the_old_file_and_nothing_else) {
  write_file_atomically(folder_ / "out.json", "old");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string error = error_of_writing(folder_ / "out.json", std::string(100'000, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(error, AllOf(HasSubstr((folder_ / "out.json").string()), HasSubstr("EFBIG")));
  EXPECT_EQ(read(folder_ / "out.json"), "old");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(ResultFile, check_finds_a_path_that_cannot_be_written_and_leaves_nothing) {
  std::ofstream(folder_ / "file") << "x";
  const auto refusal = [](const fs::path& path) -> std::string {
    try {
      check_writable(path);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "writable";
  };
  EXPECT_THAT(refusal(folder_), HasSubstr("EISDIR"));
  EXPECT_THAT(refusal(folder_ / "file" / "out.json"), AllOf(HasSubstr("out.json"), HasSubstr("ENOTDIR")));
  EXPECT_THAT(refusal(folder_ / std::string(300, 'n')), HasSubstr("ENAMETOOLONG"));
  EXPECT_THAT(refusal("/proc/out.json"), HasSubstr("/proc/out.json"));
  EXPECT_EQ(refusal(folder_ / "out.json"), "writable");
  EXPECT_EQ(refusal(folder_ / "file"), "writable");
  EXPECT_EQ(read(folder_ / "file"), "x");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(ResultFile, a_write_protected_file_is_not_replaced) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write to any file";
  write_file_atomically(folder_ / "out.json", "old");
  fs::permissions(folder_ / "out.json", fs::perms::owner_read);
  EXPECT_THAT(error_of_writing(folder_ / "out.json", "new"), HasSubstr("EACCES"));
  EXPECT_EQ(read(folder_ / "out.json"), "old");
}

TEST_F(ResultFile, samples_are_dumped_one_a_line_in_the_order_measured) {
  ResultDocument document;
  document.cases = {sample::latency_case(Path::gdr, 8, {1, 2})};
  document.cases[0].repetitions[0].ranks[0].samples_ns = {3500, 1250};
  document.cases[0].repetitions[1].ranks[0].samples_ns = {2000};
  write_samples(folder_ / "samples.csv", document);
  EXPECT_EQ(read(folder_ / "samples.csv"),
            "suite,path,op,memory,completion,size_bytes,repetition,index,latency_ns\n"
            "latency,gdr,send,host,poll,8,0,0,3500\n"
            "latency,gdr,send,host,poll,8,0,1,1250\n"
            "latency,gdr,send,host,poll,8,1,0,2000\n");
}

TEST(ResultJson, carries_google_benchmarks_parts_unchanged_beside_ours) {
  const ResultDocument document = sample::three_paths();
  const Json json = to_json(document);
  EXPECT_EQ(nlohmann::json(json["context"]), document.context);
  EXPECT_EQ(nlohmann::json(json["benchmarks"]), document.benchmarks);
  EXPECT_EQ(json["gdrbench"]["schema"], 2);
}

TEST(ResultJson, latency_has_percentiles_and_bandwidth_has_rates) {
  const Json json = to_json(sample::three_paths());
  const Json& latency = json["gdrbench"]["cases"][2]["repetitions"][1];
  EXPECT_DOUBLE_EQ(latency["latency_us"]["p50"].get<double>(), 30);
  EXPECT_DOUBLE_EQ(latency["latency_us"]["p99_9"].get<double>(), 59.94);
  EXPECT_TRUE(latency["bytes_per_second"].is_null());
  const Json& bandwidth = json["gdrbench"]["cases"][5]["repetitions"][0];
  EXPECT_TRUE(bandwidth["latency_us"].is_null());
  EXPECT_DOUBLE_EQ(bandwidth["bytes_per_second"].get<double>(), 3e9);
  EXPECT_NEAR(bandwidth["cpu"][1]["seconds_per_gb"].get<double>(), 0.5 / 6, 1e-9);
}

TEST(ResultJson, is_functional_where_software_stands_in_for_the_nic) {
  ResultDocument document;
  for (const auto& [kind, name] : EnumNames<FabricKind>::names) {
    document.fabric.kind = kind;
    EXPECT_EQ(to_json(document)["gdrbench"]["functional"],
              kind == FabricKind::soft_roce || kind == FabricKind::softverbs)
        << name;
  }
}

TEST(ResultJson, footprint_is_the_memory_used_and_not_the_one_asked_for) {
  const auto footprint = [](Case c) {
    ResultDocument document;
    document.cases.resize(1);
    document.cases[0].test_case = c;
    return to_json(document)["gdrbench"]["cases"][0]["footprint_bytes"].get<std::uint64_t>();
  };
  Case c{.suite = Suite::bandwidth, .size_bytes = 1 << 20, .queue_pairs = 4, .footprint_bytes = 1 << 20};
  EXPECT_EQ(footprint(c), 4U << 20) << "one message on each queue pair";
  c.footprint_bytes = 64 << 20;
  EXPECT_EQ(footprint(c), 64U << 20);
  c.size_bytes = 8;
  EXPECT_EQ(footprint(c), 4U * 4096 * 64) << "4096 messages on each, on cache lines of their own";
  c.suite = Suite::latency;
  c.queue_pairs = 1;
  EXPECT_EQ(footprint(c), 64U) << "one slot";
}

/// Runs scripts/check-result on the document.
class CheckedResult : public ResultFile {
 protected:
  void SetUp() override {
    if (std::system("/usr/bin/python3 -c 'import jsonschema' 2>/dev/null") != 0)
      GTEST_SKIP() << "python3-jsonschema is not installed";
  }
  struct Outcome {
    int status;
    std::string text;
  };
  Outcome check(const std::string& content) const {
    write_file_atomically(folder_ / "out.json", content);
    const fs::path script = fs::path(GDRBENCH_SOURCE_DIR) / "scripts/check-result";
    FILE* pipe = popen(
        ("/usr/bin/python3 '" + script.string() + "' '" + (folder_ / "out.json").string() + "' 2>&1").c_str(),
        "r");
    std::string text;
    std::array<char, 4096> chunk;
    while (const std::size_t length = fread(chunk.data(), 1, chunk.size(), pipe))
      text.append(chunk.data(), length);
    return {WEXITSTATUS(pclose(pipe)), text};
  }
  /// The document with one value changed is refused at that place.
  void expect_fault(const std::string& pointer, const Json& value, const std::string& expected) const {
    Json json = to_json(sample::three_paths());
    json[Json::json_pointer(pointer)] = value;
    const Outcome outcome = check(json.dump());
    EXPECT_EQ(outcome.status, 1) << pointer;
    EXPECT_THAT(outcome.text, HasSubstr(expected));
  }
};

TEST_F(CheckedResult, what_we_write_fits_the_schema_and_itself) {
  ResultDocument document = sample::three_paths();
  Outcome outcome = check(to_json(document).dump(2));
  EXPECT_EQ(outcome.status, 0) << outcome.text;

  document.fabric = {};
  document.cases.resize(2);
  document.cases[1].repetitions.clear();
  document.skipped = {{Path::gdr, "no RDMA device"}};
  document.load_skipped = {{Path::tcp, "no GPU memory"}};
  document.complete = false;
  document.incomplete_reason = "interrupted";
  outcome = check(to_json(document).dump(2));
  EXPECT_EQ(outcome.status, 0) << outcome.text;
}

TEST_F(CheckedResult, what_breaks_the_schema_is_refused_at_its_place) {
  expect_fault("/gdrbench/schema", 3, "gdrbench/schema: 3 is unknown here: check-result reads schema 1 and");
  expect_fault("/gdrbench/surprise", 1, "'surprise' was unexpected");
  expect_fault("/gdrbench/cases/0/path", "ftp", "gdrbench/cases/0/path: 'ftp' is not one of");
  expect_fault("/gdrbench/cases/0/repetitions/1/latency_us", nullptr,
               "gdrbench/cases/0/repetitions/1/latency_us: None is not of type 'object'");
  expect_fault("/gdrbench/cases/3/repetitions/0/cpu/0/user_pct", -1,
               "cpu/0/user_pct: -1 is less than the minimum");
  expect_fault("/gdrbench/cases/0/registration", "dmabuf",
               "gdrbench/cases/0/registration: 'dmabuf' is not one of ['none']");
  expect_fault("/gdrbench/incomplete_reason", "interrupted", "gdrbench/incomplete_reason");
}

TEST_F(CheckedResult, the_flush_of_gpu_memory_has_figures_or_a_reason) {
  const auto with = [](const Json& flush_us, const Json& reason) {
    ResultDocument document = sample::three_paths();
    document.cases[0].proofs.resize(2);
    for (PathProof& proof : document.cases[0].proofs) {
      proof.tcp.emplace();
      proof.policy.policy = Policy::staged;
    }
    Json json = to_json(document);
    json["gdrbench"]["cases"][0]["proof"][1]["gpu_writes"] = {{"writes_ordering", "owner"},
                                                              {"flush_needed", false},
                                                              {"flush_us", flush_us},
                                                              {"no_flush_reason", reason}};
    return json.dump();
  };
  const Json times{{"median", 1.5}, {"max", 20.0}};
  for (const std::string& good : {with(times, nullptr), with(nullptr, "the GPU offers none")}) {
    const Outcome outcome = check(good);
    EXPECT_EQ(outcome.status, 0) << outcome.text;
  }
  for (const std::string& bad :
       {with(times, "a reason"), with(nullptr, nullptr), with({{"median", 1.5}}, nullptr)})
    EXPECT_EQ(check(bad).status, 1) << bad;
}

TEST_F(CheckedResult, what_contradicts_itself_is_refused_at_its_place) {
  expect_fault("/gdrbench/functional", false, "gdrbench/functional: False, but the fabric is 'soft-roce'");
  expect_fault("/gdrbench/cases/1/repetitions/0/latency_us/p50", 1e6,
               "gdrbench/cases/1/repetitions/0/latency_us/p50: 1000000.0 is above p90");
  expect_fault("/gdrbench/cases/4/repetitions/2/bytes_per_second", 1e12,
               "gdrbench/cases/4/repetitions/2/bytes_per_second");
  expect_fault("/gdrbench/cases/1/memory", "cuda", "no measured case of path 'rdma' at this point");
  expect_fault("/gdrbench/cases/2/repetitions/0/verified", false, "verified: false in a complete run");
  expect_fault("/gdrbench/comparison/points/0/ratios/0/estimate", 0.915,
               "gdrbench/comparison/points/0/ratios/0/estimate: 0.915 is not the geometric mean");
}

TEST_F(CheckedResult, what_no_path_or_suite_gives_is_refused) {
  expect_fault("/gdrbench/cases/0/load", "compute", "gdrbench/cases/0/load: 'none' was expected");
  expect_fault("/gdrbench/cases/0/depth", 16, "gdrbench/cases/0/depth: 1 was expected");
  expect_fault("/gdrbench/cases/0/repetitions/0/cpu", Json::array(),
               "gdrbench/cases/0/repetitions/0/cpu: []");
  expect_fault("/gdrbench/cases/2/repetitions/0/stages", {{"ranks", Json::array()}, {"overlap", 1.0}},
               "gdrbench/cases/2/repetitions/0/stages");
  expect_fault("/gdrbench/comparison/points/0/metric", "bytes_per_second",
               "gdrbench/comparison/points/0/metric: 'bytes_per_second' is not one of");
  expect_fault("/gdrbench/comparison/points/0/ratios/0/reference", "p2p",
               "gdrbench/comparison/points/0/ratios/0/reference: 'p2p' is not one of");
  expect_fault("/gdrbench/comparison/points/0/ratios/0/path", "tcp_wire",
               "gdrbench/comparison/points/0/ratios/0/path");
}

TEST_F(CheckedResult, a_proof_is_that_of_the_paths_wire_and_policy) {
  ResultDocument document = sample::three_paths();
  document.cases[0].proofs.resize(2);
  for (PathProof& proof : document.cases[0].proofs) {
    proof.tcp.emplace();
    proof.policy.policy = Policy::staged;
  }
  Outcome outcome = check(to_json(document).dump());
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  document.cases[0].proofs[1].policy.policy = Policy::direct;
  outcome = check(to_json(document).dump());
  EXPECT_THAT(outcome.text, HasSubstr("gdrbench/cases/0/proof/1/policy/policy: 'staged' was expected"));
  document.cases[0].proofs[1].tcp.reset();
  outcome = check(to_json(document).dump());
  EXPECT_THAT(outcome.text, HasSubstr("gdrbench/cases/0/proof/1: 'tcp' is a required property"));
}

TEST_F(CheckedResult, the_schema_in_the_documentation_is_the_one_that_the_program_prints) {
  EXPECT_EQ(read(fs::path(GDRBENCH_SOURCE_DIR) / "docs/result.schema.json"), result_schema())
      << "gdrbench schema > docs/result.schema.json";
}

TEST_F(CheckedResult, broken_json_is_refused_with_line_and_column) {
  const Outcome outcome = check("{\n  \"a\": 1,}");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.text, HasSubstr("out.json:2:10: not JSON"));
  EXPECT_THAT(check("{\"a\": NaN}").text, HasSubstr("NaN is not JSON"));
}

}  // namespace
}  // namespace gdrbench
