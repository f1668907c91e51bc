#include <gtest/gtest.h>

#include "doctor/counters.hpp"
#include "machines/healthy.hpp"
#include "made_facts.hpp"

namespace gdrbench::doctor {
namespace {

TEST(Counters, AreReadOfEveryPortAndWithoutSettings) {
  machines::Machine made = machines::dgx();
  const std::string port = made.tree.target("sys/class/infiniband/mlx5_0") + "/ports/1";
  made.tree.file(port + "/hw_counters/out_of_sequence", "18446744073709551615");  // does not fit: left out
  made.tree.file(port + "/hw_counters/packet_seq_err", "7");
  made.tree.file(port + "/hw_counters/odd", "many");
  const MadeFacts facts(made);
  const Counters counters = read_counters(facts->root);
  EXPECT_EQ(counters.at("mlx5_0/1/packet_seq_err"), 7u);
  EXPECT_EQ(counters.at("mlx5_1/1/port_xmit_discards"), 0u);
  EXPECT_FALSE(counters.contains("mlx5_0/1/lifespan"));
  EXPECT_FALSE(counters.contains("mlx5_0/1/odd"));
  EXPECT_FALSE(counters.contains("mlx5_0/1/out_of_sequence"));
}

TEST(Counters, AreNoneWithoutDevices) {
  EXPECT_TRUE(read_counters(topology::Root("/nonexistent")).empty());
}

TEST(Counters, SurviveARecording) {
  Answers answers;
  answers.counters_before = {{"mlx5_0/1/out_of_sequence", 3}};
  answers.counters_after = {{"mlx5_0/1/out_of_sequence", std::uint64_t{1} << 63}};
  nlohmann::json document = to_json(answers);
  const Answers back = answers_from_json(document);
  EXPECT_EQ(back.counters_before, answers.counters_before);
  EXPECT_EQ(back.counters_after, answers.counters_after);

  document["counters_after"] = {{"a", "no number"}, {"b", -1}, {"c", 5}};
  EXPECT_EQ(answers_from_json(document).counters_after, (Counters{{"c", 5}}));
  document["counters_after"] = 7;
  EXPECT_TRUE(answers_from_json(document).counters_after.empty());
}

}  // namespace
}  // namespace gdrbench::doctor
