#include <gtest/gtest.h>

#include "benchmarks/registration.hpp"
#include "gdrbench/report.hpp"

namespace gdrbench {
namespace {

LocalResult result(const std::string& what, std::uint64_t size, const std::vector<double>& times_us,
                   const std::string& memory = "host") {
  LocalResult made{.suite = "registration",
                   .what = what,
                   .labels = {{"memory", memory}},
                   .size_bytes = size,
                   .moves_data = what == "copy",
                   .repetitions = {}};
  for (const double time_us : times_us)
    made.repetitions.push_back({.iterations = 10, .time_us = time_us, .device_time_us = std::nullopt});
  return made;
}

ResultDocument sample() {
  ResultDocument document;
  document.command = "gdrbench registration";
  document.complete = true;
  document.local = {result("register", 4096, {30, 10, 20}), result("deregister", 4096, {5, 5, 5}),
                    result("copy", 4096, {1, 1, 1})};
  document.local_skipped = {{"registration", "cuda dmabuf", "no GPU"},
                            {"registration", "cuda peermem", "no GPU"}};
  document.local_crossovers = {{"registration", "register below copy", {{"memory", "host"}}, 65536},
                               {"registration", "register below copy", {{"memory", "cuda"}}, std::nullopt}};
  return document;
}

TEST(LocalResults, are_kept_in_the_result_file_with_every_repetition) {
  const auto own = to_json(sample()).at("gdrbench");
  const auto& first = own.at("local").at(0);
  EXPECT_EQ(first.at("what"), "register");
  EXPECT_EQ(first.at("labels").at("memory"), "host");
  EXPECT_EQ(first.at("repetitions").size(), 3U);
  EXPECT_EQ(first.at("repetitions").at(0).at("time_us"), 30);
  EXPECT_TRUE(first.at("repetitions").at(0).at("bytes_per_second").is_null());
  EXPECT_DOUBLE_EQ(own.at("local").at(2).at("repetitions").at(0).at("bytes_per_second").get<double>(),
                   4.096e9);
  EXPECT_EQ(own.at("local_crossovers").at(0).at("from_bytes"), 65536);
  EXPECT_TRUE(own.at("local_crossovers").at(1).at("from_bytes").is_null());
  EXPECT_EQ(own.at("local_skipped").at(1).at("reason"), "no GPU");
}

TEST(LocalResults, leave_no_trace_in_a_file_without_them) {
  EXPECT_FALSE(to_json(ResultDocument{}).at("gdrbench").contains("local"));
  EXPECT_EQ(local_blocks(ResultDocument{}), "");
}

TEST(LocalResults, show_medians_in_one_row_for_each_size) {
  const std::string table = local_table(sample(), {.title = "gdrbench registration"});
  EXPECT_NE(table.find("20.0 µs"), std::string::npos) << table;
  EXPECT_NE(table.find("4.10 GB/s"), std::string::npos) << table;
  EXPECT_EQ(table.find("\nhost "), table.rfind("\nhost ")) << "more than one row:\n" << table;
  EXPECT_NE(table.find("register below copy, host: from 64 KiB"), std::string::npos) << table;
  EXPECT_NE(table.find("register below copy, cuda: nowhere"), std::string::npos) << table;
  EXPECT_NE(table.find("cuda dmabuf, cuda peermem skipped: no GPU"), std::string::npos) << table;
  EXPECT_NE(table.find("Medians of 3 repetitions"), std::string::npos) << table;
}

TEST(RegistrationCrossover, is_the_size_from_which_on_registering_pays) {
  std::vector<LocalResult> results;
  // At 4 KiB registering is cheaper by chance, at 16 KiB dearer, from 64 KiB on cheaper for good.
  for (const auto& [size, use, copy] : {std::tuple{4096, 1.0, 3.0}, {16384, 9.0, 5.0}, {65536, 10.0, 25.0}}) {
    const auto bytes = static_cast<std::uint64_t>(size);
    results.push_back(result("register", bytes, {use}));
    results.push_back(result("deregister", bytes, {1.0}));
    results.push_back(result("copy", bytes, {copy}));
  }
  results.push_back(result("register", 4096, {10}, "cuda"));
  results.push_back(result("deregister", 4096, {0}, "cuda"));
  results.push_back(result("copy", 4096, {10}, "cuda"));
  const auto crossovers = benchmarks::registration_crossovers(results);
  ASSERT_EQ(crossovers.size(), 2U);
  EXPECT_EQ(crossovers[0].from_bytes, 65536U);
  EXPECT_EQ(crossovers[1].from_bytes, std::nullopt) << "as long as the copy is not less";
}

}  // namespace
}  // namespace gdrbench
