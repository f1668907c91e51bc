#include "fake_session.hpp"
#include "session/data_connections.hpp"

namespace gdrbench::session::fake {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using SessionTest = ServerTest;

// A client made of bare messages, which can be killed anywhere.
struct BareClient {
  explicit BareClient(const Server& server) : address{"127.0.0.1", server.port()} {
    control = wire::connect_tcp(address, after(2s));
    greet_server(control, "server", "", "", after(2s));
    expect_type(hear(), "welcome", "");
  }
  void say(const json& message) { send_message(control, message, after(2s), "test"); }
  json hear() { return receive_message(control, after(5s), "test"); }
  json open(const json& description) {
    say({{"type", "open"}, {"id", 1}, {"rank", 1}, {"ranks", 2}, {"case", description}, {"accept", {0}}});
    return hear();
  }
  void start_run() {
    const json opened = open(to_json(Case{}));
    data = open_data_connection(address, opened.at("tokens").at(0), 0, after(2s));
    say(connect);
    expect_type(hear(), "connected", "");
    say({{"type", "run"}, {"id", 1}, {"iterations", 1000}, {"warmup", 0}, {"seed", 1}});
    expect_type(hear(), "ready", "");
    say({{"type", "go"}});
  }

  wire::Address address;
  wire::Socket control;
  wire::Socket data;
  const json connect = {{"type", "connect"},
                        {"id", 1},
                        {"offers", {{{"from", "test"}}, {{"from", "responder"}}}},
                        {"dial", json::array()}};
};

TEST_F(SessionTest, ARunGivesTheFiguresOfAllRanks) {
  Server server;
  Case c;
  c.queue_pairs = 3;
  c.size_bytes = 100;
  const auto open = open_case(client(server), c, c);
  const RunResult result = open->run({.iterations = 50, .warmup = 0, .seed = 7});
  EXPECT_EQ(result.iterations, 50);
  ASSERT_EQ(result.ranks.size(), 2);
  EXPECT_EQ(result.ranks[0].samples_ns.size(), 50);
  EXPECT_EQ(result.elapsed_s, 1.5);
  EXPECT_EQ(result.ranks[0].cpu.user_s, 0.75);
  EXPECT_EQ(result.ranks[1].cpu.user_s, 1.25);
  EXPECT_EQ(result.payload_bytes, 2 * 50 * 100);  // a round trip carries the payload both ways
  EXPECT_TRUE(result.verified);
  EXPECT_THAT(result.started, ::testing::MatchesRegex("20..-..-..T..:..:..Z"));
  ASSERT_EQ(open->proofs().size(), 2);
  for (const PathProof& proof : open->proofs()) {
    EXPECT_EQ(proof.tcp->remote, "initiator, responder") << "every rank gets the offers of all";
    EXPECT_EQ(proof.tcp->sockets, 3);
  }
  EXPECT_TRUE(server.logs(case_name(c)));
}

TEST_F(SessionTest, SeveralOpenCasesRunInTurn) {
  Server server;
  const auto session = client(server);
  const auto one = open_case(session, {}, {});
  const auto two = open_case(session, {}, {});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(one->run({.iterations = 5}).iterations, 5);
    EXPECT_EQ(two->run({.iterations = 6}).iterations, 6);
  }
}

TEST_F(SessionTest, ACaseMayOutliveTheSessionThatOpenedIt) {
  Server server;
  auto session = client(server);
  const auto open = open_case(session, {}, {});
  session.reset();
  EXPECT_NO_THROW(open->run({.iterations = 5}));
}

TEST_F(SessionTest, ClosingACaseFreesBothEnds) {
  Server server;
  const auto session = client(server);
  auto open = open_case(session, {}, {});
  EXPECT_EQ(server.alive, 1);
  open.reset();
  EXPECT_EQ(alive, 0);
  open_case(session, {}, {})->run({.iterations = 1});  // answered after the close was
  EXPECT_LE(server.alive, 1);
}

TEST_F(SessionTest, AnUnavailableResponderIsNamedWithItsReason) {
  Server server;
  server.behaviour.cannot_run = "no RDMA device";
  EXPECT_EQ(thrown<Unavailable>([&] { open_case(client(server), {}, {}); }),
            "responder " + server.name() + ": no RDMA device");
}

TEST_F(SessionTest, AnUnavailableInitiatorIsNamedWithItsReason) {
  Server server;
  behaviour.cannot_run = "no CUDA driver";
  EXPECT_EQ(thrown<Unavailable>([&] { open_case(client(server), {}, {}); }), "initiator: no CUDA driver");
}

TEST_F(SessionTest, AFailedConnectLeavesTheSessionUsable) {
  Server server;
  const auto session = client(server);
  server.behaviour.cannot_connect = "route lost";
  EXPECT_THAT(thrown<Error>([&] { open_case(session, {}, {}); }),
              HasSubstr("responder " + server.name() + ": route"));
  behaviour.cannot_connect = "no route";
  EXPECT_THAT(thrown<Error>([&] { open_case(session, {}, {}); }),
              AllOf(StartsWith("initiator: no route; responder"), HasSubstr(": route lost")));
  server.behaviour.cannot_connect = behaviour.cannot_connect = "";
  EXPECT_NO_THROW(open_case(session, {}, {})->run({.iterations = 5}));
  EXPECT_EQ(alive, 0);
}

TEST_F(SessionTest, AWrongByteFailsTheRunAndNamesItsEndAndCase) {
  Server server;
  const auto open = open_case(client(server), {}, {});
  server.behaviour.wrong_byte = "byte 17 is 0x00";
  EXPECT_EQ(thrown<Error>([&] { open->run({.iterations = 5}); }),
            case_name({}) + ": responder " + server.name() + ": byte 17 is 0x00");
  server.behaviour.wrong_byte = "";
  behaviour.wrong_byte = "byte 3 is 0x01";
  EXPECT_EQ(thrown<Error>([&] { open->run({.iterations = 5}); }),
            case_name({}) + ": initiator: byte 3 is 0x01");
  behaviour.wrong_byte = "";
  EXPECT_NO_THROW(open->run({.iterations = 5}));
}

TEST_F(SessionTest, AFaultOfTheResponderEndsTheInitiatorsLoopAtOnce) {
  Server server;
  const auto session = client(server);
  const auto open = open_case(session, {}, {});
  server.behaviour.run_fault = "IBV_WC_LOC_PROT_ERR (4)";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(thrown<Error>([&] { open->run({.iterations = 5}); }),
            case_name({}) + ": responder " + server.name() + ": IBV_WC_LOC_PROT_ERR (4)");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s);
  server.behaviour.run_fault = "";
  EXPECT_THAT(thrown<Error>([&] { open->run({.iterations = 5}); }), HasSubstr("closed after a failure"));
  EXPECT_NO_THROW(open_case(session, {}, {})->run({.iterations = 5}));
}

TEST_F(SessionTest, AFaultOfTheInitiatorLeavesTheSessionUsable) {
  Server server;
  const auto session = client(server);
  const auto open = open_case(session, {}, {});
  behaviour.run_fault = "IBV_WC_RETRY_EXC_ERR (12)";
  EXPECT_EQ(thrown<Error>([&] { open->run({.iterations = 5}); }),
            case_name({}) + ": initiator: IBV_WC_RETRY_EXC_ERR (12)");
  EXPECT_TRUE(server.logs("given up by the client: IBV_WC_RETRY_EXC_ERR"));
  behaviour.run_fault = "";
  EXPECT_NO_THROW(open_case(session, {}, {})->run({.iterations = 5}));
}

TEST_F(SessionTest, ARunThatIsNotOverAtItsDeadlineIsGivenUpAndLeavesTheSessionUsable) {
  Server server;
  const auto session = client(server);
  const auto late = open_case(session, {}, {});
  server.behaviour.silent = true;
  const auto began = std::chrono::steady_clock::now();
  EXPECT_THROW(late->run({.iterations = 5, .deadline = began + 100ms}), OutOfTime);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s) << "as long as a peer that stands still";
  server.behaviour.silent = false;
  EXPECT_EQ(open_case(session, {}, {})->run({.iterations = 5}).iterations, 5);
}

TEST_F(SessionTest, TheFirstStatusThatIsNoFlushIsReported) {
  Server server;
  const auto session = client(server);
  auto open = open_case(session, {}, {});
  behaviour.run_fault = "IBV_WC_WR_FLUSH_ERR (5)";
  server.behaviour.run_fault = "IBV_WC_LOC_PROT_ERR (4)";
  EXPECT_THAT(thrown<Error>([&] { open->run({.iterations = 5}); }),
              AllOf(HasSubstr("responder"), HasSubstr("LOC_PROT"), Not(HasSubstr("FLUSH"))));
  open = open_case(session, {}, {});
  std::swap(behaviour.run_fault, server.behaviour.run_fault);
  EXPECT_THAT(thrown<Error>([&] { open->run({.iterations = 5}); }),
              AllOf(HasSubstr("initiator: IBV_WC_LOC_PROT"), Not(HasSubstr("FLUSH"))));
}

TEST_F(SessionTest, AResponderThatStandsStillIsGivenUpAtTheStallLimit) {
  Server server;
  const auto session = client(server);
  const auto open = open_case(session, {}, {});
  server.behaviour.silent = true;
  EXPECT_THAT(thrown<PeerLost>([&] { open->run({.iterations = 5}); }), HasSubstr("nothing moved for 3 s"));
  server.behaviour.silent = false;
  EXPECT_NO_THROW(open_case(session, {}, {})->run({.iterations = 5}));
}

TEST_F(SessionTest, AServerGoneInARunIsALostPeerWithItsName) {
  Server server;
  const auto open = open_case(client(server), {}, {});
  server.behaviour.silent = true;
  std::thread killer([&] {
    std::this_thread::sleep_for(200ms);
    server.stop();
  });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(thrown<PeerLost>([&] { open->run({.iterations = 5}); }), HasSubstr(server.name()));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  killer.join();
}

TEST_F(SessionTest, AClientKilledInARunIsNoticedAndTheNextOneServed) {
  Server server;
  {
    BareClient victim(server);
    victim.start_run();
    EXPECT_EQ(server.alive, 1);
  }
  EXPECT_TRUE(server.logs(" lost: "));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_NO_THROW(open_case(client(server), {}, {})->run({.iterations = 5}));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
}

TEST_F(SessionTest, AClientThatSaysNothingIsDroppedAtTheIdleLimit) {
  ServeOptions options;
  options.idle_limit = 300ms;
  Server server(options);
  BareClient silent(server);
  EXPECT_TRUE(server.logs("lost: waiting for its next message"));
  EXPECT_TRUE(closed_within(silent.control, 2s));
  EXPECT_NO_THROW(client(server));
}

TEST_F(SessionTest, LimitsAreNamedWithTheFlagThatRaisesThem) {
  ServeOptions options;
  options.max_payload_bytes = 10'000;
  options.max_queue_pairs = 4;
  Server server(options);
  const auto session = client(server);
  Case c;
  c.queue_pairs = 3;
  const auto open = open_case(session, c, c);
  EXPECT_THAT(thrown<Unavailable>([&] { open_case(session, c, c); }),
              AllOf(HasSubstr("3 queue pairs"), HasSubstr("limit is 4"), HasSubstr("--max-queue-pairs")));
  server.behaviour.payload_bytes = 10'001;
  c.queue_pairs = 1;
  EXPECT_THAT(thrown<Unavailable>([&] { open_case(session, c, c); }),
              AllOf(HasSubstr("4 KiB are in use"), HasSubstr("--max-memory")));
  server.behaviour.payload_bytes = 4096;
  EXPECT_NO_THROW(open_case(session, c, c));
  server.behaviour.bounce_bytes = 6000;
  EXPECT_THAT(thrown<Unavailable>([&] { open_case(session, c, c); }),
              AllOf(StartsWith("responder " + server.name() + ": 4 KiB of payload and "),
                    HasSubstr("of bounce memory asked for"), HasSubstr("--max-memory")));
}

TEST_F(SessionTest, AClientThatIsSilentAfterItsFaultIsDroppedSoon) {
  Server server;
  server.behaviour.run_fault = "broken";
  BareClient silent(server);
  silent.start_run();
  EXPECT_EQ(type_of(silent.hear()), "error");
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(closed_within(silent.control, 8s));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 8s);
}

TEST_F(SessionTest, TheNameOfACaseIsSaidOnceInItsFault) {
  Server server;
  const auto open = open_case(client(server), {}, {});
  server.behaviour.wrong_byte = case_name({}) + ": wrong byte";
  EXPECT_EQ(thrown<Error>([&] { open->run({.iterations = 5}); }),
            case_name({}) + ": responder " + server.name() + ": wrong byte");
}

TEST_F(SessionTest, APathThatSteersATerminalIsLoggedEscaped) {
  Server server;
  BareClient bare(server);
  json description = to_json(Case{});
  description["path"] = "\x1b[2J\nfake line";
  bare.open(description);
  EXPECT_TRUE(server.logs("\\x1b[2J\\x0afake line"));
  EXPECT_EQ(server.log().find('\x1b'), std::string::npos);
}

TEST_F(SessionTest, ABadCaseIsAnsweredWithItsFieldAndTheSessionGoesOn) {
  Server server;
  BareClient bare(server);
  json description = to_json(Case{});
  description["depth"] = 0;
  EXPECT_THAT(text_of(bare.open(description), "text"), HasSubstr("case.depth"));
  EXPECT_EQ(type_of(bare.open(to_json(Case{}))), "opened");
  EXPECT_THAT(text_of(bare.open(to_json(Case{})), "text"), HasSubstr("open already"));
}

TEST_F(SessionTest, AnUnknownRequestEndsTheSessionAndNotTheServer) {
  Server server;
  BareClient bare(server);
  bare.say({{"type", 5}});
  EXPECT_TRUE(closed_within(bare.control, 2s));
  EXPECT_NO_THROW(client(server));
}

TEST_F(SessionTest, MissingDataConnectionsFailTheCaseOnly) {
  Server server;
  BareClient bare(server);
  bare.open(to_json(Case{}));
  bare.say(bare.connect);
  EXPECT_THAT(text_of(receive_message(bare.control, after(8s), "test"), "text"), HasSubstr("0 of 1"));
  EXPECT_EQ(type_of(bare.open(to_json(Case{}))), "opened");
}

}  // namespace
}  // namespace gdrbench::session::fake
