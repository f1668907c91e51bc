#include "fake_session.hpp"

namespace gdrbench::session::fake {
namespace {

using ::testing::HasSubstr;

using Examination = ServerTest;

ServeOptions answering(std::function<json(const json&)> examine) {
  ServeOptions options;
  options.examine = std::move(examine);
  return options;
}

TEST_F(Examination, an_answer_larger_than_a_message_comes_back_whole) {
  const std::string large(3 << 20, '"');  // escaped twice on its way
  Server server(answering([&](const json& request) { return json{{"asked", request}, {"µ", large}}; }));
  const auto visitor = client(server);
  const json answer = examine(*visitor, {{"size_bytes", 7}});
  EXPECT_EQ(answer.at("asked").at("size_bytes"), 7);
  EXPECT_EQ(answer.at("µ").get<std::string>(), large);
  EXPECT_EQ(examine(*visitor, 1).at("asked"), 1) << "the session is of use afterwards";
}

TEST_F(Examination, a_failure_keeps_its_text_and_the_session) {
  Server server(answering([](const json& request) -> json {
    if (request == "fail") throw Error("the driver hangs");
    return "fine";
  }));
  const auto visitor = client(server);
  try {
    examine(*visitor, "fail");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the driver hangs"));
  }
  EXPECT_EQ(examine(*visitor, "again"), "fine");
}

TEST_F(Examination, a_server_that_does_not_look_at_its_machine_says_so) {
  Server server;
  EXPECT_THROW(examine(*client(server), {}), Unavailable);
}

TEST(ExaminationParts, fit_messages_and_say_which_is_the_last) {
  const std::vector<json> parts = parts_of(std::string(1 << 20, '\x01'));
  ASSERT_GT(parts.size(), 1U);
  for (const json& part : parts) {
    EXPECT_LE(part.dump().size(), max_message_bytes);
    EXPECT_EQ(part.at("more").get<bool>(), &part != &parts.back());
  }
}

}  // namespace
}  // namespace gdrbench::session::fake
