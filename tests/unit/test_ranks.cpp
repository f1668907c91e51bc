#include <array>
#include <future>

#include "fake_session.hpp"
#include "gdrbench/session.hpp"
#include "session/data_connections.hpp"

namespace gdrbench::session::fake {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// Three servers, and a client with a session at each, which is itself rank 0 or none of the ranks.
class Ranks : public ServerTest {
 protected:
  std::unique_ptr<OpenCase> open_at_servers() {
    std::vector<Place> places;
    for (const auto& session : sessions) places.push_back({session, {}});
    return open_case(std::move(places));
  }
  std::unique_ptr<OpenCase> open_with_rank_0_here() {
    return open_case({{nullptr, {}}, {sessions[1], {}}, {sessions[2], {}}});
  }
  std::string name(std::size_t rank) const {
    return "rank " + std::to_string(rank) + (rank == 0 ? " (initiator) " : " (responder) ") +
           servers[rank].name();
  }
  void expect_usable() {
    EXPECT_EQ(open_at_servers()->run({.iterations = 3}).iterations, 3);
    EXPECT_EQ(open_with_rank_0_here()->run({.iterations = 3}).iterations, 3);
  }

  mutable std::array<Server, 3> servers;
  std::array<std::shared_ptr<Client>, 3> sessions{client(servers[0]), client(servers[1]), client(servers[2])};
};

TEST_F(Ranks, AtThreeServersMeasureBetweenThemselves) {
  const auto open = open_at_servers();
  const RunResult result = open->run({.iterations = 20});
  EXPECT_EQ(alive, 0) << "no rank is here";
  ASSERT_EQ(result.ranks.size(), 3);
  EXPECT_EQ(result.elapsed_s, 1.5);
  EXPECT_EQ(result.ranks[2].elapsed_s, 3.5);
  EXPECT_EQ(result.ranks[0].messages_sent, 20);
  EXPECT_EQ(result.ranks[2].messages_received, 20);
  ASSERT_TRUE(result.ranks[0].latency_us);
  EXPECT_EQ(result.ranks[0].latency_us->p50, 7);
  EXPECT_TRUE(result.ranks[0].samples_ns.empty()) << "samples stay where they were taken";
  EXPECT_TRUE(result.verified);
}

TEST_F(Ranks, GetTheOffersOfAllAndConnectionsToEachOther) {
  for (const auto& open : {open_at_servers(), open_with_rank_0_here()}) {
    ASSERT_EQ(open->proofs().size(), 3);
    for (const PathProof& proof : open->proofs()) {
      EXPECT_EQ(proof.tcp->remote, "rank 0 (initiator), rank 1 (responder), rank 2 (responder)");
      EXPECT_EQ(proof.tcp->sockets, 2);
    }
  }
}

TEST_F(Ranks, OfWhichOneIsHereHaveItAtAnyNumber) {
  const auto open = open_case({{sessions[0], {}}, {nullptr, {}}, {sessions[2], {}}});
  for (int i = 0; i < 3; ++i) {
    const RunResult result = open->run({.iterations = 10});
    EXPECT_EQ(result.ranks[1].messages_received, 10);
    EXPECT_EQ(result.ranks[1].elapsed_s, 2.5);
  }
}

TEST_F(Ranks, OfTwoAreNamedByTheirRolesAlone) {
  servers[0].behaviour.cannot_run = "no RDMA device";
  EXPECT_EQ(thrown<Unavailable>([&] {
              open_case({{sessions[0], {}}, {sessions[1], {}}});
            }),
            "initiator " + servers[0].name() + ": no RDMA device");
}

TEST_F(Ranks, ThatCannotOpenAreNamedWithTheirReasonsAndTheOthersAreClosed) {
  servers[1].behaviour.cannot_run = "no RDMA device";
  servers[2].behaviour.cannot_run = "no CUDA driver";
  EXPECT_EQ(thrown<Unavailable>([&] { open_at_servers(); }),
            name(1) + ": no RDMA device; " + name(2) + ": no CUDA driver");
  EXPECT_THAT(thrown<Unavailable>([&] { open_with_rank_0_here(); }), StartsWith(name(1)));
  EXPECT_EQ(alive, 0);
  servers[1].behaviour.cannot_run = servers[2].behaviour.cannot_run = "";
  expect_usable();
  EXPECT_LE(servers[0].alive, 1);
}

TEST_F(Ranks, ThatCannotConnectAreNamed) {
  servers[2].behaviour.cannot_connect = "no route";
  EXPECT_EQ(thrown<Error>([&] { open_at_servers(); }), name(2) + ": no route");
  behaviour.cannot_connect = "route lost";
  EXPECT_EQ(thrown<Error>([&] { open_with_rank_0_here(); }),
            "rank 0 (initiator): route lost; " + name(2) + ": no route");
  servers[2].behaviour.cannot_connect = behaviour.cannot_connect = "";
  expect_usable();
}

TEST_F(Ranks, ThatFailToPrepareEndTheRunBeforeItBegins) {
  for (std::size_t rank = 0; rank < 3; ++rank) {
    const auto open = open_at_servers();
    servers[rank].behaviour.prepare_fault = "out of memory";
    EXPECT_EQ(thrown<Error>([&] { open->run({.iterations = 5}); }),
              case_name({}) + ": " + name(rank) + ": out of memory");
    EXPECT_THAT(thrown<Error>([&] { open->run({.iterations = 5}); }), HasSubstr("closed after a failure"));
    servers[rank].behaviour.prepare_fault = "";
    expect_usable();
  }
  behaviour.prepare_fault = "out of memory";
  EXPECT_EQ(thrown<Error>([&] { open_with_rank_0_here()->run({.iterations = 5}); }),
            case_name({}) + ": rank 0 (initiator): out of memory");
  behaviour.prepare_fault = "";
  expect_usable();
}

TEST_F(Ranks, ThatFailInTheirLoopsEndThoseOfAll) {
  for (std::size_t rank = 0; rank < 3; ++rank) {
    servers[rank].behaviour.run_fault = "IBV_WC_LOC_PROT_ERR (4)";
    for (const bool here : {false, true}) {
      if (here && rank == 0) continue;
      const auto open = here ? open_with_rank_0_here() : open_at_servers();
      const auto begin = std::chrono::steady_clock::now();
      EXPECT_EQ(thrown<Error>([&] { open->run({.iterations = 5}); }),
                case_name({}) + ": " + name(rank) + ": IBV_WC_LOC_PROT_ERR (4)");
      EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s);
    }
    servers[rank].behaviour.run_fault = "";
    expect_usable();
  }
}

TEST_F(Ranks, WithAStatusThatIsNoFlushAreReportedAndTheOthersNot) {
  const auto open = open_at_servers();
  servers[0].behaviour.run_fault = servers[1].behaviour.run_fault = "IBV_WC_WR_FLUSH_ERR (5)";
  servers[2].behaviour.run_fault = "IBV_WC_REM_ACCESS_ERR (10)";
  EXPECT_EQ(thrown<Error>([&] { open->run({.iterations = 5}); }),
            case_name({}) + ": " + name(2) + ": IBV_WC_REM_ACCESS_ERR (10)");
}

TEST_F(Ranks, ThatFindWrongBytesAreAllNamedAndTheCaseStaysOpen) {
  const auto open = open_at_servers();
  servers[1].behaviour.wrong_byte = "byte 17 is 0x00";
  servers[2].behaviour.wrong_byte = "byte 18 is 0x00";
  EXPECT_EQ(thrown<Error>([&] { open->run({.iterations = 5}); }),
            case_name({}) + ": " + name(1) + ": byte 17 is 0x00; " + name(2) + ": byte 18 is 0x00");
  servers[1].behaviour.wrong_byte = servers[2].behaviour.wrong_byte = "";
  EXPECT_NO_THROW(open->run({.iterations = 5}));
}

TEST_F(Ranks, HaveTheStallLimitAtRank0WhereverItIs) {
  const auto open = open_at_servers();
  servers[0].behaviour.silent = true;
  const std::string text = thrown<PeerLost>([&] { open->run({.iterations = 5}); });
  EXPECT_THAT(text, AllOf(StartsWith(case_name({}) + ": " + name(0)), HasSubstr("nothing moved for 3 s")));
  servers[0].behaviour.silent = false;
  expect_usable();
}

TEST_F(Ranks, AreGivenUpAtTheDeadlineWhereverRank0Is) {
  const auto open = open_at_servers();
  servers[0].behaviour.silent = true;
  const auto began = std::chrono::steady_clock::now();
  EXPECT_THROW(open->run({.iterations = 5, .deadline = began + 100ms}), OutOfTime);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 2s);
  servers[0].behaviour.silent = false;
  expect_usable();
}

TEST_F(Ranks, OfWhichOneDiesEndTheRunAndLeaveTheOtherSessionsUsable) {
  const auto open = open_at_servers();
  servers[0].behaviour.silent = true;
  const auto stopped = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(200ms);
    servers[2].stop();
  });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(thrown<PeerLost>([&] { open->run({.iterations = 5}); }),
              AllOf(HasSubstr(name(2)), Not(HasSubstr(name(1)))));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  servers[0].behaviour.silent = false;
  EXPECT_NO_THROW(open_case({{sessions[0], {}}, {sessions[1], {}}})->run({.iterations = 5}));
  EXPECT_THAT(thrown<PeerLost>([&] { open_at_servers(); }), HasSubstr("session ended earlier"));
  EXPECT_NO_THROW(open_case({{sessions[0], {}}, {sessions[1], {}}})->run({.iterations = 5}));
}

TEST_F(Ranks, NeedASessionEachAndOneAtAServer) {
  EXPECT_THAT(thrown<UsageError>([&] {
                open_case({{sessions[0], {}}, {sessions[0], {}}});
              }),
              HasSubstr("join another session"));
  EXPECT_THAT(thrown<UsageError>([&] {
                open_case({{nullptr, {}}, {nullptr, {}}, {sessions[0], {}}});
              }),
              HasSubstr("one rank in this process"));
  EXPECT_THROW(open_case({{nullptr, {}}, {nullptr, {}}}), UsageError);
  EXPECT_THROW(open_case({{sessions[0], {}}}), UsageError);
}

TEST_F(Ranks, AtOneServerRunInJoinedSessions) {
  const auto second = sessions[0]->join();
  const auto open = open_case({{sessions[0], {}}, {second, {}}});
  EXPECT_EQ(open->run({.iterations = 5}).ranks.size(), 2);
  EXPECT_EQ(servers[0].alive, 2);
}

using JoinedSessions = ServerTest;

TEST_F(JoinedSessions, RunCasesAtTheSameTimeInAThreadEach) {
  Server server(with_key("sesame"));
  std::vector<std::shared_ptr<Client>> sessions{client(server, "sesame")};
  for (int i = 0; i < 3; ++i) sessions.push_back(sessions.front()->join());
  server.behaviour.silent = true;
  std::vector<std::future<void>> runs;
  for (const auto& session : sessions)
    runs.push_back(std::async(std::launch::async, [session] {
      const auto open = open_case(session, {}, {});
      EXPECT_THROW(open->run({.iterations = 5, .deadline = std::chrono::steady_clock::now() + 1s}),
                   OutOfTime);
    }));
  const auto all_are_open = [&] { return server.alive == 4; };
  for (const auto deadline = after(5s); !all_are_open() && std::chrono::steady_clock::now() < deadline;)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(server.alive, 4) << "four runs that stand still at the same time";
  for (std::future<void>& run : runs) run.get();
  server.behaviour.silent = false;
  for (const auto& session : sessions) EXPECT_NO_THROW(open_case(session, {}, {})->run({.iterations = 5}));
}

TEST_F(JoinedSessions, KeepOtherClientsOutUntilTheLastHasLeft) {
  Server server;
  auto first = client(server);
  auto second = first->join();
  first.reset();
  EXPECT_NO_THROW(open_case(second, {}, {})->run({.iterations = 5}));
  EXPECT_THAT(thrown<Error>([&] { client(server); }), HasSubstr("busy"));
  const auto third = second->join();
  second.reset();
  EXPECT_THAT(thrown<Error>([&] { client(server); }), HasSubstr("busy"));
  EXPECT_NO_THROW(open_case(third, {}, {})->run({.iterations = 5}));
}

TEST_F(JoinedSessions, ShareTheLimitsOfTheServer) {
  ServeOptions options;
  options.max_queue_pairs = 4;
  Server server(options);
  const auto first = client(server), second = first->join();
  Case c;
  c.queue_pairs = 3;
  const auto open = open_case(first, c, c);
  EXPECT_THAT(thrown<Unavailable>([&] { open_case(second, c, c); }), HasSubstr("3 are in use"));
  EXPECT_NO_THROW(open_case(second, {}, {}));
}

TEST_F(JoinedSessions, AreIdleOnlyTogether) {
  ServeOptions options;
  options.idle_limit = 400ms;
  Server server(options);
  const auto first = client(server), second = first->join();
  const auto open = open_case(first, {}, {});
  for (int i = 0; i < 8; ++i) {
    open->run({.iterations = 1});
    std::this_thread::sleep_for(150ms);
  }
  EXPECT_NO_THROW(open_case(second, {}, {})) << "silent for three times as long";
}

TEST_F(JoinedSessions, EndWithTheServer) {
  Server server;
  const auto first = client(server), second = first->join();
  const auto open = open_case(first, {}, {}), other = open_case(second, {}, {});
  const auto begin = std::chrono::steady_clock::now();
  server.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
  EXPECT_THROW(open->run({.iterations = 1}), PeerLost);
  EXPECT_THROW(other->run({.iterations = 1}), PeerLost);
}

TEST_F(JoinedSessions, CountAsOneClientOfThoseThatRunServes) {
  ServeOptions options;
  options.port = 0;
  ServerCore core(options, harness(behaviour, alive));
  auto serving = std::async(std::launch::async, [&] { core.run(1); });
  ConnectOptions o;
  o.port = core.port();
  {
    auto first = std::make_shared<Client>(o, harness(behaviour, alive));
    const auto second = first->join();
    first.reset();
    EXPECT_EQ(serving.wait_for(300ms), std::future_status::timeout);
    EXPECT_NO_THROW(open_case(second, {}, {})->run({.iterations = 5}));
  }
  EXPECT_EQ(serving.wait_for(2s), std::future_status::ready);
}

TEST_F(JoinedSessions, AreRefusedWithoutTheTokenOrTheKeyOrBeyondTheLimit) {
  Server server(with_key("sesame"));
  const auto first = client(server, "sesame");
  wire::Socket thief = wire::connect_tcp({"127.0.0.1", server.port()}, after(2s));
  greet_server(thief, "server", "sesame", std::string(32, 'a'), after(2s));
  EXPECT_THAT(text_of(receive_message(thief, after(5s), "test"), "text"), HasSubstr("is over"));
  wire::Socket keyless = wire::connect_tcp({"127.0.0.1", server.port()}, after(2s));
  EXPECT_THROW(greet_server(keyless, "server", "", std::string(32, 'a'), after(2s)), UsageError);

  std::vector<std::shared_ptr<Client>> sessions;
  for (int i = 0; i < 63; ++i) sessions.push_back(first->join());
  EXPECT_THAT(thrown<Error>([&] { first->join(); }), HasSubstr("this client has 64 sessions"));
  EXPECT_NO_THROW(open_case(sessions.back(), {}, {})->run({.iterations = 5}));
}

TEST_F(JoinedSessions, OfAVisitThatIsOverAreRefused) {
  Server server;
  const auto first = client(server);
  server.stop();
  Server other;
  EXPECT_ANY_THROW(first->join());
}

/// Servers of the library in this process, whose runners measure.
class RealServers : public ::testing::Test {
 protected:
  RealServers() {
    for (std::size_t i = 0; i < 2; ++i) {
      ServeOptions options = with_key("sesame");
      options.port = 0;
      servers[i] = std::make_unique<gdrbench::Server>(options);
      threads[i] = std::thread([this, i] { servers[i]->run(); });
    }
  }
  ~RealServers() override {
    for (std::size_t i = 0; i < 2; ++i) {
      servers[i]->stop();
      threads[i].join();
    }
  }
  Session session(std::size_t server) const {
    ConnectOptions options;
    options.port = servers[server]->port();
    options.key = "sesame";
    return Session(options);
  }

  std::array<std::unique_ptr<gdrbench::Server>, 2> servers;
  std::array<std::thread, 2> threads;
};

TEST_F(RealServers, MeasureBetweenThemselvesAsAClientTellsThem) {
  Session first = session(0), second = session(1);
  for (const Path path : {Path::tcp, Path::tcp_wire}) {
    Case c;
    c.path = path;
    c.completion = CompletionMode::event;
    const auto open = gdrbench::open_case({{&first, c}, {&second, c}});
    const RunResult run = open->run({.iterations = 20, .warmup = 2, .seed = 5});
    EXPECT_TRUE(run.verified);
    ASSERT_EQ(run.ranks.size(), 2);
    EXPECT_TRUE(run.ranks[0].latency_us);
    EXPECT_GT(run.elapsed_s, 0);
    EXPECT_EQ(run.payload_bytes, 2 * 20 * c.size_bytes);
    EXPECT_EQ(open->proofs()[0].tcp->local, open->proofs()[1].tcp->remote);
  }
}

TEST_F(RealServers, RunCasesOfJoinedSessionsAtTheSameTime) {
  std::vector<Session> sessions;
  sessions.push_back(session(0));
  for (int i = 0; i < 2; ++i) sessions.push_back(sessions.front().join());
  EXPECT_EQ(sessions.back().remote().host, sessions.front().remote().host);
  std::vector<std::future<RunResult>> runs;
  for (Session& session : sessions)
    runs.push_back(std::async(std::launch::async, [&session] {
      Case c;
      c.suite = Suite::bandwidth;
      c.size_bytes = 65536;
      c.completion = CompletionMode::event;
      return session.open(c, c)->run({.iterations = 50, .warmup = 5, .seed = 6});
    }));
  for (auto& run : runs) EXPECT_TRUE(run.get().verified);
}

TEST_F(RealServers, RefuseMoreRanksThanTheSuiteHas) {
  Session first = session(0), second = session(1), third = first.join();
  const std::string text = thrown<UsageError>([&] {
    gdrbench::open_case({{&first, {}}, {&second, {}}, {&third, {}}});
  });
  EXPECT_THAT(text, HasSubstr("the latency suite has 2 ranks, not 3"));
}

}  // namespace
}  // namespace gdrbench::session::fake
