#include "fake_session.hpp"

namespace gdrbench::session::fake {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using HandshakeTest = ServerTest;
using StrangerTest = ServerTest;

ServeOptions with_key(const std::string& key) {
  ServeOptions options;
  options.key = key;
  return options;
}

TEST_F(HandshakeTest, EqualKeysLeadToAWelcomeWithTheServersDescription) {
  Server server(with_key("sesame"));
  EXPECT_EQ(client(server, "sesame")->peer().at("host"), "fake");
  EXPECT_TRUE(server.logs("connected (gdrbench 0.1.0)"));
  EXPECT_TRUE(server.logs(" left"));
}

TEST_F(HandshakeTest, AWrongKeyIsRefusedWithATextOnBothEnds) {
  Server server(with_key("sesame"));
  EXPECT_THAT(thrown<UsageError>([&] { client(server, "simsim"); }),
              AllOf(HasSubstr(server.name()), HasSubstr("the key is wrong")));
  EXPECT_TRUE(server.logs("refused: the key is wrong"));
}

TEST_F(HandshakeTest, AMissingKeyIsAskedForWithTheFlagsThatGiveIt) {
  Server server(with_key("sesame"));
  EXPECT_THAT(thrown<UsageError>([&] { client(server); }),
              HasSubstr("the server asks for a key: pass --key-file FILE or set GDRBENCH_KEY"));
  EXPECT_TRUE(server.logs("refused: it has no key"));
}

TEST_F(HandshakeTest, AClientWithAKeyRefusesAServerWithout) {
  Server server;
  EXPECT_THAT(thrown<UsageError>([&] { client(server, "sesame"); }), HasSubstr("--no-key"));
  EXPECT_TRUE(server.logs("refused: it has a key, but this server runs with --no-key"));
}

TEST_F(HandshakeTest, AServerThatCannotProveTheKeyIsNotTrusted) {
  wire::Listener listener({"127.0.0.1", 0});
  std::thread impostor([&] {
    wire::Socket socket = listener.accept(wire::after(5s));
    const json hello = receive_message(socket, wire::after(5s), "test");
    json answer = make_hello("control");
    answer["key"] = true;
    answer["nonce"] =
        hello.at("nonce");  // so that the client's own proof would fit, did it not carry the role
    json proof = ask(socket, answer);
    send_message(socket, proof, wire::after(1s), "test");
  });
  ConnectOptions o;
  o.port = listener.port();
  o.key = "sesame";
  EXPECT_THAT(thrown<UsageError>([&] { Client(o, harness(behaviour, alive)); }),
              HasSubstr("does not know the key"));
  impostor.join();
}

TEST_F(HandshakeTest, AClientThatSkipsTheProofGetsNothing) {
  Server server(with_key("sesame"));
  wire::Socket socket = raw(server);
  json hello = make_hello("control");
  hello["key"] = true;
  hello["nonce"] = std::string(32, 'a');
  EXPECT_EQ(ask(socket, hello).at("key"), true);
  send_message(socket, {{"type", "open"}}, wire::after(1s), "test");
  EXPECT_TRUE(closed_within(socket, 2s));
}

TEST_F(HandshakeTest, AnotherProtocolIsRefusedByBothEndsWithBothVersions) {
  Server server;
  wire::Socket socket = raw(server);
  json hello = make_hello("control");
  hello["gdrbench"] = protocol_version + 1;
  hello["version"] = "9.9.9";
  const json answer = ask(socket, hello);
  EXPECT_EQ(answer.at("gdrbench"), protocol_version);
  EXPECT_TRUE(closed_within(socket, 2s));
  EXPECT_TRUE(server.logs("update gdrbench on this end"));
  EXPECT_TRUE(server.logs("9.9.9"));

  hello["gdrbench"] = protocol_version - 1;
  EXPECT_THAT(thrown<Error>([&] { check_protocol(hello, "node-b:7471"); }),
              AllOf(HasSubstr("9.9.9"), HasSubstr("0.1.0"), HasSubstr("update gdrbench on node-b:7471")));
}

TEST_F(HandshakeTest, ASecondClientIsToldWhoIsServed) {
  Server server;
  const auto first = client(server);
  EXPECT_THAT(thrown<Error>([&] { client(server); }),
              AllOf(HasSubstr("busy, served: 127.0.0.1:"), HasSubstr(" since 2")));
  EXPECT_TRUE(server.logs("refused: busy"));
}

TEST_F(HandshakeTest, TheNextClientIsServedRightAfterTheLastOneLeft) {
  Server server;
  for (int i = 0; i < 5; ++i) EXPECT_NO_THROW(client(server));
}

TEST_F(HandshakeTest, RunReturnsAfterSoManySessions) {
  ServeOptions options;
  options.port = 0;
  ServerCore core(options, harness(behaviour, alive));
  std::thread serving([&] { core.run(2); });
  ConnectOptions o;
  o.port = core.port();
  for (int i = 0; i < 2; ++i) Client(o, harness(behaviour, alive));
  serving.join();
}

TEST_F(StrangerTest, AnHttpRequestIsShownInTheLogAndClosedAtOnce) {
  Server server;
  wire::Socket socket = raw(server);
  const std::string request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  socket.send_all(std::as_bytes(std::span(request)), wire::after(1s), "test");
  EXPECT_TRUE(closed_within(socket, 2s));
  EXPECT_TRUE(server.logs("it begins with \"GET / HTTP/1.1\\x0d\\x0a"));
  EXPECT_NO_THROW(client(server));
}

TEST_F(StrangerTest, AClaimOfFourGibibytesIsRefusedAtOnce) {
  Server server;
  wire::Socket socket = raw(server);
  const std::string claim = "\xff\xff\xff\xff{\"gdrbench\"";
  socket.send_all(std::as_bytes(std::span(claim)), wire::after(1s), "test");
  EXPECT_TRUE(closed_within(socket, 2s));
  EXPECT_TRUE(server.logs("claims 4294967295 bytes (1048576 are allowed)"));
  EXPECT_NO_THROW(client(server));
}

TEST_F(StrangerTest, AClaimOfFiveGibibytesInEightBytesIsRefusedAtOnce) {
  Server server;
  wire::Socket socket = raw(server);
  const std::string claim("\0\0\0\x01\x40\0\0\0", 8);  // as a 64-bit length; as ours: 1 byte, then '@'
  socket.send_all(std::as_bytes(std::span(claim)), wire::after(1s), "test");
  EXPECT_TRUE(closed_within(socket, 2s));
  EXPECT_TRUE(server.logs("no gdrbench message"));
  EXPECT_NO_THROW(client(server));
}

TEST_F(StrangerTest, ASilentStrangerDoesNotHoldUpAClient) {
  Server server;
  wire::Socket silent = raw(server);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_NO_THROW(client(server));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
  EXPECT_TRUE(closed_within(silent, 7s));
}

TEST_F(StrangerTest, AStrangerWhoTricklesBytesIsClosedAtTheHandshakeLimit) {
  Server server;
  wire::Socket slow = raw(server);
  const auto begin = std::chrono::steady_clock::now();
  const std::string start("\0\0\x01\0", 4);
  EXPECT_THROW(
      {
        slow.send_all(std::as_bytes(std::span(start)), wire::after(1s), "test");
        for (int i = 0; i < 80; ++i) {
          slow.send_all(std::as_bytes(std::span("{", 1)), wire::after(1s), "test");
          std::this_thread::sleep_for(100ms);
        }
      },
      PeerLost);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 7s);
}

TEST_F(StrangerTest, MoreThanSixteenStrangersAreClosedAtOnce) {
  Server server;
  std::vector<wire::Socket> strangers;
  strangers.reserve(16);
  for (int i = 0; i < 16; ++i) strangers.push_back(raw(server));
  wire::Socket one_more = raw(server);
  EXPECT_TRUE(closed_within(one_more, 2s));
  EXPECT_TRUE(server.logs("16 others are in their handshake"));
}

TEST_F(StrangerTest, ADataConnectionWithAWrongTokenIsRefused) {
  Server server;
  const auto session = client(server);
  const auto open = open_case(session, {}, {});
  EXPECT_THAT(thrown<Error>([&] {
                open_lane({"127.0.0.1", server.port()}, "0123456789abcdef", 0, wire::after(2s));
              }),
              HasSubstr("no open case has this token"));
  EXPECT_TRUE(server.logs("refused: data connection"));
  EXPECT_NO_THROW(open->run({.iterations = 10}));
}

TEST_F(StrangerTest, AStopEndsTheServerAtOnceWhateverIsConnected) {
  Server server;
  wire::Socket silent = raw(server);
  const auto served = client(server);
  const auto begin = std::chrono::steady_clock::now();
  server.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
}

}  // namespace
}  // namespace gdrbench::session::fake
