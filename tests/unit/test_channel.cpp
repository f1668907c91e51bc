#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "gdrbench/error.hpp"
#include "session/acceptor.hpp"
#include "session/channel.hpp"

namespace gdrbench::session {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ChannelTest : public ::testing::Test {
 protected:
  void put(const std::string& bytes) { near.send_all(std::as_bytes(std::span(bytes)), after(2s), "test"); }
  void put_frame(const std::string& text) {
    std::string header;
    for (const int shift : {24, 16, 8, 0}) header += static_cast<char>(text.size() >> shift & 0xff);
    put(header + text);
  }
  json take() { return receive_message(far, after(1s), "taking"); }
  std::string refusal() {
    try {
      return "taken: " + take().dump().substr(0, 100);
    } catch (const PeerLost& fault) {
      return fault.what();
    }
  }

  wire::Listener listener{{"127.0.0.1", 0}};
  wire::Socket near = wire::connect_tcp({"127.0.0.1", listener.port()}, after(2s));
  wire::Socket far = listener.accept(after(2s));
};

TEST_F(ChannelTest, AMessageArrivesAsItWasSent) {
  const json message = {{"type", "open"}, {"seed", 18446744073709551615u}, {"text", "µs"}, {"none", nullptr}};
  send_message(near, message, after(1s), "test");
  send_message(near, {{"type", "second"}}, after(1s), "test");
  EXPECT_EQ(take(), message);
  EXPECT_EQ(take().at("type"), "second");
}

TEST_F(ChannelTest, TheLengthIsBigEndian) {
  send_message(near, json::object(), after(1s), "test");
  std::array<std::byte, 6> bytes{};
  far.receive_all(bytes, after(1s), "test");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), 6), std::string("\0\0\0\x02{}", 6));
}

TEST_F(ChannelTest, AMessageOfTheLargestSizePassesAndOneByteMoreDoesNot) {
  json message = {{"t", ""}};
  message["t"] = std::string(max_message_bytes - message.dump().size(), 'x');
  std::thread sender([&] { send_message(near, message, after(5s), "test"); });
  EXPECT_EQ(take(), message);
  sender.join();
  message["t"].get_ref<std::string&>() += 'x';
  EXPECT_THROW(send_message(near, message, after(1s), "test"), Error);
  put(std::string("\0\x10\0\x01{", 5));
  EXPECT_THAT(refusal(), HasSubstr("claims 1048577 bytes"));
}

TEST_F(ChannelTest, GarbageIsShownEscaped) {
  put("SSH-2.0-OpenSSH_9.2\r\n");
  EXPECT_THAT(refusal(),
              AllOf(StartsWith("taking: "), HasSubstr("begins with \"SSH-2.0-OpenSSH_9.2\\x0d\\x0a\"")));
}

TEST_F(ChannelTest, TextThatIsNoJsonObjectIsRefused) {
  put_frame("hello");
  EXPECT_THAT(refusal(), HasSubstr("begins with \"hello\""));
  put_frame("[1]");
  EXPECT_THAT(refusal(), HasSubstr("not an object"));
  put_frame("");
  EXPECT_THAT(refusal(), HasSubstr("not a gdrbench message"));
  put_frame("{\"a\": 1} x");
  EXPECT_THAT(refusal(), HasSubstr("not a gdrbench message"));
}

TEST_F(ChannelTest, DeepNestingIsRefusedBeforeItCanOverflowTheStack) {
  put_frame("{\"a\":" + std::string(500'000, '['));
  EXPECT_THAT(refusal(), HasSubstr("too deeply nested"));
  put_frame("{\"a\":[[[[[[[[[[]]]]]]]]]]}");
  EXPECT_EQ(take().size(), 1);
}

TEST_F(ChannelTest, ABrokenTextDoesNotBreakTheSender) {
  send_message(near, {{"host", "\xff\xfe"}}, after(1s), "test");
  EXPECT_EQ(take().at("host"), "\ufffd\ufffd");
}

TEST_F(ChannelTest, HalfAMessageEndsAtTheDeadline) {
  put(std::string("\0\0\0\x10{\"a\"", 8));
  EXPECT_THAT(refusal(), HasSubstr("timed out"));
}

TEST(Message, ErrorsKeepTheirKindAcrossTheConnection) {
  EXPECT_THROW(throw_error(error_message(Unavailable("x")), ""), Unavailable);
  EXPECT_THROW(throw_error(error_message(UsageError("x")), ""), UsageError);
  try {
    throw_error(error_message(std::runtime_error("went wrong")), "node-b: ");
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "node-b: went wrong");
    EXPECT_EQ(e.status(), ExitStatus::failed);
  }
}

TEST(Message, ControlCharactersOfARemoteDoNotReachTheTerminal) {
  EXPECT_EQ(text_of({{"text", "a\x1b[31mµ\n"}}, "text"), "a\\x1b[31mµ\\x0a");
  EXPECT_LT(text_of({{"text", std::string(100'000, 'x')}}, "text").size(), 5'000);
  EXPECT_EQ(text_of({{"text", 5}}, "text"), "");
  EXPECT_EQ(text_of({{"text", "a\u009b2J\u0080\u00a0\x7f"}}, "text"), "a\\x9b2J\\x80\u00a0\\x7f");
}

TEST(Message, ALongTextIsCutBetweenCharacters) {
  std::string expected = "x";
  while (expected.size() + 2 <= 4096) expected += "µ";
  std::string text = "x";
  for (int i = 0; i < 5000; ++i) text += "µ";
  EXPECT_EQ(text_of({{"text", text}}, "text"), expected + "…");
}

TEST(Log, WhatAClientSentNeitherSteersTheTerminalNorBeginsALine) {
  std::string written;
  Log log([&](const std::string& line) { written = line; });
  log("case.path: unknown '\x1b[2J\x1b]0;pwn\x07\nfake line\u009b' \x9b\xc2");
  EXPECT_EQ(written, "case.path: unknown '\\x1b[2J\\x1b]0;pwn\\x07\\x0afake line\\x9b' \\x9b\\xc2");
  log("µ → 日本 😀");
  EXPECT_EQ(written, "µ → 日本 😀");
}

}  // namespace
}  // namespace gdrbench::session
