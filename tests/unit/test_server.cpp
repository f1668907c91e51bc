#include <netinet/in.h>
#include <sys/resource.h>

#include "fake_session.hpp"
#include "session/data_connections.hpp"
#include "session/replies.hpp"

namespace gdrbench::session::fake {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using HandshakeTest = ServerTest;
using PendingConnectionTest = ServerTest;
using BrokenServerTest = ServerTest;
using ::testing::StartsWith;

TEST_F(HandshakeTest, EqualKeysLeadToAWelcomeWithTheServersDescription) {
  Server server(with_key("sesame"));
  EXPECT_EQ(client(server, "sesame")->remote().host, "fake");
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
  EXPECT_TRUE(server.logs("refused: it has a key, but this server has none (loopback, or --no-key)"));
}

TEST_F(HandshakeTest, AServerThatCannotProveTheKeyIsNotTrusted) {
  wire::Listener listener({"127.0.0.1", 0});
  std::thread impostor([&] {
    wire::Socket socket = listener.accept(after(5s));
    const json hello = receive_message(socket, after(5s), "test");
    json answer = make_hello("control");
    answer["key"] = true;
    answer["nonce"] =
        hello.at("nonce");  // so that the client's own proof would fit, did it not carry the role
    json proof = ask(socket, answer);
    send_message(socket, proof, after(1s), "test");
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
  send_message(socket, {{"type", "open"}}, after(1s), "test");
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

// As JSON patches: what a welcome may not say of its end.
TEST_F(BrokenServerTest, ADescriptionThatLacksWhatIsReliedOnIsALostPeer) {
  const json patches = json::parse(R"([
    {"op": "remove", "path": "/end"},
    {"op": "replace", "path": "/end", "value": 5},
    {"op": "replace", "path": "/end", "value": "x"},
    {"op": "replace", "path": "/end", "value": null},
    {"op": "replace", "path": "/end/host", "value": 5},
    {"op": "remove", "path": "/end/cuda"},
    {"op": "replace", "path": "/end/cuda/unavailable", "value": null},
    {"op": "remove", "path": "/end/rdma"},
    {"op": "remove", "path": "/end/rdma/unavailable"},
    {"op": "replace", "path": "/end/rdma/devices", "value": {}},
    {"op": "replace", "path": "/end/rdma/devices/0", "value": "mlx5_0"},
    {"op": "replace", "path": "/end/rdma/devices/0/name", "value": 5},
    {"op": "replace", "path": "/end/rdma/devices/0/fabric", "value": "nosuch"},
    {"op": "remove", "path": "/end/rdma/devices/0/link_layer"},
    {"op": "replace", "path": "/end/rdma/devices/0/unusable", "value": 5},
    {"op": "replace", "path": "/end/rdma/devices/0/active_mtu", "value": "x"},
    {"op": "replace", "path": "/end/rdma/devices/0/link_bytes_per_second", "value": -1}])");
  for (const json& patch : patches) {
    BrokenServer server;
    server.welcome = server.welcome.patch(json::array({patch}));
    EXPECT_THAT(thrown<PeerLost>([&] { Client(server.options(), harness(behaviour, alive)); }),
                AllOf(StartsWith("server 127.0.0.1:"), HasSubstr(": protocol violation: ")))
        << patch;
  }
}

TEST_F(BrokenServerTest, ADescriptionCannotSteerTheTerminal) {
  BrokenServer server;
  server.welcome["end"]["cuda"]["unavailable"] = "\x1b[2J";
  const Client here(server.options(), harness(behaviour, alive));
  EXPECT_EQ(here.remote().cuda.unavailable, "\\x1b[2J");
}

// Of a verbs path, which needs no data connections.
Case broken_case() {
  Case c;
  c.suite = Suite::bandwidth;
  c.path = Path::rdma;
  return c;
}

TEST_F(BrokenServerTest, AnOfferThatMakesNoSenseIsALostPeer) {
  for (const json& offer : {json(), json(5), json::object()}) {
    BrokenServer server;
    server.opened["offer"] = offer;
    const auto here = std::make_shared<Client>(server.options(), harness(behaviour, alive));
    EXPECT_THAT(thrown<PeerLost>([&] { open_case(here, broken_case(), broken_case()); }),
                AllOf(HasSubstr(": protocol violation: "), HasSubstr("offer"), Not(HasSubstr("json"))));
  }
}

TEST_F(BrokenServerTest, FiguresThatCannotBeAreALostPeer) {
  const json patches = json::parse(R"([
    {"op": "remove", "path": "/fault"},
    {"op": "replace", "path": "/fault", "value": 5},
    {"op": "remove", "path": "/result"},
    {"op": "replace", "path": "/describe", "value": 5},
    {"op": "replace", "path": "/result/cpu/user_s", "value": -5},
    {"op": "replace", "path": "/result/elapsed_s", "value": 1e308},
    {"op": "replace", "path": "/result/messages_received", "value": 0},
    {"op": "replace", "path": "/result/messages_received", "value": 6}])");
  for (const json& patch : patches) {
    BrokenServer server;
    server.done = server.done.patch(json::array({patch}));
    const auto here = std::make_shared<Client>(server.options(), harness(behaviour, alive));
    const auto open = open_case(here, broken_case(), broken_case());
    EXPECT_THAT(thrown<PeerLost>([&] { open->run({.iterations = 5}); }), HasSubstr(": protocol violation: "))
        << patch;
  }
  BrokenServer honest;
  const auto here = std::make_shared<Client>(honest.options(), harness(behaviour, alive));
  EXPECT_NO_THROW(open_case(here, broken_case(), broken_case())->run({.iterations = 5}));
}

TEST_F(BrokenServerTest, TheMessagesOfEachDirectionAreCompared) {
  Case c = broken_case();
  const json done = {{"result", to_json(RankResult{.messages_sent = 4, .messages_received = 5})}};
  const auto messages_of = [&](Direction direction, std::uint64_t iterations) {
    c.direction = direction;
    return result_of(done, c, {.iterations = iterations}, 1, "responder").messages_sent;
  };
  EXPECT_NO_THROW(messages_of(Direction::forward, 5));
  EXPECT_NO_THROW(messages_of(Direction::reverse, 4));
  EXPECT_THROW(messages_of(Direction::forward, 4), PeerLost);
  EXPECT_THROW(messages_of(Direction::reverse, 5), PeerLost);
  EXPECT_THROW(messages_of(Direction::both, 5), PeerLost);
  c.path = Path::gdr;
  c.op = Op::write;
  EXPECT_NO_THROW(messages_of(Direction::both, 7));  // its target sees no messages
}

TEST_F(PendingConnectionTest, AnHttpRequestIsShownInTheLogAndClosedAtOnce) {
  Server server;
  wire::Socket socket = raw(server);
  const std::string request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  socket.send_all(std::as_bytes(std::span(request)), after(1s), "test");
  EXPECT_TRUE(closed_within(socket, 2s));
  EXPECT_TRUE(server.logs("it begins with \"GET / HTTP/1.1\\x0d\\x0a"));
  EXPECT_NO_THROW(client(server));
}

TEST_F(PendingConnectionTest, AClaimOfFourGibibytesIsRefusedAtOnce) {
  Server server;
  wire::Socket socket = raw(server);
  const std::string claim = "\xff\xff\xff\xff{\"gdrbench\"";
  socket.send_all(std::as_bytes(std::span(claim)), after(1s), "test");
  EXPECT_TRUE(closed_within(socket, 2s));
  EXPECT_TRUE(server.logs("claims 4294967295 bytes (1048576 are allowed)"));
  EXPECT_NO_THROW(client(server));
}

TEST_F(PendingConnectionTest, AClaimOfFiveGibibytesInEightBytesIsRefusedAtOnce) {
  Server server;
  wire::Socket socket = raw(server);
  const std::string claim("\0\0\0\x01\x40\0\0\0", 8);  // as a 64-bit length; as ours: 1 byte, then '@'
  socket.send_all(std::as_bytes(std::span(claim)), after(1s), "test");
  EXPECT_TRUE(closed_within(socket, 2s));
  EXPECT_TRUE(server.logs("not a gdrbench message"));
  EXPECT_NO_THROW(client(server));
}

TEST_F(PendingConnectionTest, ASilentOneDoesNotHoldUpAClient) {
  Server server;
  wire::Socket silent = raw(server);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_NO_THROW(client(server));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
  EXPECT_TRUE(closed_within(silent, 7s));
}

TEST_F(PendingConnectionTest, OneThatTricklesBytesIsClosedAtTheHandshakeLimit) {
  Server server;
  wire::Socket slow = raw(server);
  const auto begin = std::chrono::steady_clock::now();
  const std::string start("\0\0\x01\0", 4);
  EXPECT_THROW(
      {
        slow.send_all(std::as_bytes(std::span(start)), after(1s), "test");
        for (int i = 0; i < 80; ++i) {
          slow.send_all(std::as_bytes(std::span("{", 1)), after(1s), "test");
          std::this_thread::sleep_for(100ms);
        }
      },
      PeerLost);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 7s);
}

TEST_F(PendingConnectionTest, MoreThanSixteenAreClosedAtOnce) {
  Server server;
  std::vector<wire::Socket> pending;
  pending.reserve(16);
  for (int i = 0; i < 16; ++i) pending.push_back(raw(server));
  wire::Socket one_more = raw(server);
  EXPECT_TRUE(closed_within(one_more, 2s));
  EXPECT_TRUE(server.logs("16 others are in their handshake"));
}

TEST_F(PendingConnectionTest, ADataConnectionWithAWrongTokenIsRefused) {
  Server server;
  const auto session = client(server);
  const auto open = open_case(session, {}, {});
  EXPECT_THAT(thrown<Error>([&] {
                open_data_connection({"127.0.0.1", server.port()}, "0123456789abcdef", 0, after(2s));
              }),
              HasSubstr("no open case has this token"));
  EXPECT_TRUE(server.logs("refused: data connection"));
  EXPECT_NO_THROW(open->run({.iterations = 10}));
}

// While it lives, this process gets no more descriptors.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{.rlim_cur = 3, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST_F(PendingConnectionTest, AServerOutOfDescriptorsSaysSoOnceAndGoesOn) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer's own checks of virtual calls need a descriptor";
#endif
  Server server;
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server.port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string said = "cannot accept a connection: EMFILE (Too many open files); raise ulimit -n\n";
  {
    const NoDescriptors exhausted;
    ASSERT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_TRUE(server.logs(said));
    std::this_thread::sleep_for(300ms);
  }
  EXPECT_EQ(server.log(), said);
  EXPECT_NO_THROW(client(server));
}

TEST_F(PendingConnectionTest, AStopEndsTheServerAtOnceWhateverIsConnected) {
  Server server;
  wire::Socket silent = raw(server);
  const auto served = client(server);
  const auto begin = std::chrono::steady_clock::now();
  server.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
}

}  // namespace
}  // namespace gdrbench::session::fake
