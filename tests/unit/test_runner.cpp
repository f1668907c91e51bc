#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "gdrbench/error.hpp"
#include "measure/path_runner.hpp"
#include "measure/runner.hpp"
#include "path/direct.hpp"
#include "wire/tcp_wire.hpp"

namespace gdrbench::measure {
namespace {

using namespace std::chrono_literals;

/// A TCP wire that must split messages, as RDMA devices must split long ones.
class ShortTcpWire : public wire::TcpWire {
 public:
  using TcpWire::TcpWire;
  std::uint64_t max_message() const { return 1000; }
};
using MakeRunner = std::unique_ptr<Runner> (*)(const Case&, Role, Payload&);
std::unique_ptr<Runner> make_short_runner(const Case& c, Role role, Payload& payload) {
  using Short = path::Direct<ShortTcpWire>;
  return std::make_unique<PathRunner<ShortTcpWire, Short>>(c, role, payload, Short::wire_limits(c));
}

/// Both ends of a case in this process, each in a thread of its own, joined by real sockets.
class TwoEnds {
 public:
  explicit TwoEnds(const Case& c, MakeRunner make = make_runner)
      : initiator_(make(c, Role::initiator, initiator_payload)),
        responder_(make(c, Role::responder, responder_payload)) {
    wire::Listener listener({"127.0.0.1", 0});
    std::vector<wire::Socket> ours, theirs;
    for (std::uint32_t lane = 0; lane < c.queue_pairs; ++lane) {
      ours.push_back(wire::connect_tcp({"127.0.0.1", listener.port()}, wire::after(5s)));
      theirs.push_back(listener.accept(wire::after(5s)));
    }
    initiator_->connect(responder_->offer(), std::move(ours));
    responder_->connect(initiator_->offer(), std::move(theirs));
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, control_), 0);
  }
  ~TwoEnds() {
    for (const int fd : control_) close(fd);
  }

  EndResult run(const RunRequest& request) {
    initiator_->prepare(request);
    responder_->prepare(request);
    EndResult responder_result;
    std::thread responder([&] {
      Watch watch(control_[1], 10s);
      responder_result = responder_->run(watch);
    });
    Watch watch(control_[0], 10s);
    EndResult result = initiator_->run(watch);
    const char finish = 'f';
    EXPECT_EQ(write(control_[0], &finish, 1), 1);
    responder.join();
    char read_back = 0;
    EXPECT_EQ(read(control_[1], &read_back, 1), 1);
    return result;
  }
  std::string faults() { return initiator_->verify() + responder_->verify(); }

  Payload initiator_payload, responder_payload;

 private:
  std::unique_ptr<Runner> initiator_, responder_;
  int control_[2] = {-1, -1};
};

std::string test_name(const testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  std::string name = std::string(to_string(c.suite)) + "_" + std::string(to_string(c.path)) + "_" +
                     std::string(to_string(c.op)) + "_" + std::to_string(c.size_bytes) + "_" +
                     std::string(to_string(c.direction)) + "_" + std::string(to_string(c.completion)) + "_" +
                     std::string(to_string(c.staging.variant)) + "_" + std::to_string(c.queue_pairs) +
                     "lanes" + (c.tcp_threads ? "_" + std::to_string(*c.tcp_threads) + "threads" : "");
  return name;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Path path : {Path::tcp, Path::tcp_wire})
    for (const Op op : {Op::send, Op::write, Op::write_imm, Op::read})
      for (const Suite suite : {Suite::latency, Suite::bandwidth, Suite::visible})
        for (const CompletionMode completion : {CompletionMode::poll, CompletionMode::event}) {
          if (op == Op::write && completion == CompletionMode::event) continue;  // refused, see below
          if (suite == Suite::visible && (op == Op::read || completion == CompletionMode::event)) continue;
          for (const std::uint64_t size : {1ULL, 1025ULL, (1ULL << 20) + 1}) {
            Case c{.suite = suite,
                   .path = path,
                   .op = op,
                   .completion = completion,
                   .size_bytes = size,
                   .footprint_bytes = 4 << 20};
            if (times_messages(suite)) {
              all.push_back(c);
              continue;
            }
            for (const Direction direction : {Direction::forward, Direction::reverse, Direction::both}) {
              c.direction = direction;
              c.queue_pairs = size == 1025 ? 3 : 1;
              c.staging.variant = size == 1 ? Staging::plain : Staging::pipelined;
              all.push_back(c);
            }
          }
        }
  return all;
}

class RunnerCase : public testing::TestWithParam<Case> {};

TEST_P(RunnerCase, moves_every_byte_in_repeated_runs) {
  const Case& c = GetParam();
  TwoEnds ends(c);
  std::uint64_t seed = 7;
  for (const std::uint64_t iterations : {1, 37, 5}) {
    const EndResult result = ends.run({.iterations = iterations, .warmup = 3, .seed = ++seed});
    EXPECT_EQ(ends.faults(), "");
    EXPECT_EQ(result.samples_us.size(), times_messages(c.suite) ? iterations : 0);
    EXPECT_GT(result.elapsed_s, 0);
    // Timed where chunks stream: only the stages that this end has take time, and none more than all.
    ASSERT_EQ(result.stages.has_value(), is_staged(c.path) && !times_messages(c.suite));
    if (!result.stages) continue;
    const path::Flow flow = path::flow_of(c, true);
    EXPECT_EQ(result.stages->gpu_to_host_s > 0, path::needs_outgoing(c, flow));
    EXPECT_EQ(result.stages->wire_s > 0, flow.posts);
    EXPECT_EQ(result.stages->host_to_gpu_s > 0, path::needs_incoming(c, flow));
    for (const double stage_s :
         {result.stages->gpu_to_host_s, result.stages->wire_s, result.stages->host_to_gpu_s})
      EXPECT_LE(stage_s, result.elapsed_s * 1.001 + 1e-4);
  }
}
INSTANTIATE_TEST_SUITE_P(Tcp, RunnerCase, testing::ValuesIn(cases()), test_name);

std::vector<Case> cases_with_threads() {
  std::vector<Case> some;
  for (Case c : cases()) {
    if (times_messages(c.suite) || c.direction == Direction::reverse || c.size_bytes == 1) continue;
    c.queue_pairs = 3;
    c.tcp_threads = c.direction == Direction::both ? 3 : 2;
    some.push_back(c);
  }
  return some;
}
INSTANTIATE_TEST_SUITE_P(TcpThreads, RunnerCase, testing::ValuesIn(cases_with_threads()), test_name);

TEST(Runner, splits_messages_that_are_longer_than_the_wire_takes) {
  for (const Op op : {Op::send, Op::write, Op::write_imm, Op::read})
    for (const Suite suite : {Suite::latency, Suite::bandwidth}) {
      TwoEnds ends({.suite = suite,
                    .path = Path::tcp_wire,
                    .op = op,
                    .size_bytes = 30'001,
                    .depth = 2,
                    .footprint_bytes = 100'000},
                   make_short_runner);
      ends.run({.iterations = 9, .warmup = 2, .seed = 3});
      EXPECT_EQ(ends.faults(), "") << to_string(op);
    }
}

TEST(Runner, finds_a_byte_that_was_changed_after_it_arrived) {
  const Case c{.suite = Suite::bandwidth, .path = Path::tcp, .size_bytes = 5000, .footprint_bytes = 20'000};
  TwoEnds ends(c);
  ends.run({.iterations = 10, .warmup = 0, .seed = 1});
  ASSERT_EQ(ends.faults(), "");
  ends.responder_payload.incoming->data()[4711] ^= std::byte{1};
  EXPECT_NE(ends.faults().find("byte 4711"), std::string::npos) << ends.faults();
}

TEST(Runner, takes_data_of_another_run_for_wrong) {
  const Case c{
      .suite = Suite::bandwidth, .path = Path::tcp_wire, .size_bytes = 4096, .footprint_bytes = 4096};
  TwoEnds ends(c);
  ends.run({.iterations = 1, .warmup = 0, .seed = 1});
  const std::vector<std::byte> stale(ends.responder_payload.incoming->data(),
                                     ends.responder_payload.incoming->data() + 4096);
  ends.run({.iterations = 1, .warmup = 0, .seed = 2});
  std::copy(stale.begin(), stale.end(), ends.responder_payload.incoming->data());
  EXPECT_NE(ends.faults(), "");
}

std::string fault_of_offer(const Case& c, const nlohmann::json& offer) {
  Payload payload;
  const auto runner = make_runner(c, Role::responder, payload);
  try {
    runner->connect(offer, {});
    return "";
  } catch (const PeerLost& fault) {
    return fault.what();
  }
}

TEST(Runner, names_the_field_of_an_offer_that_makes_no_sense) {
  using nlohmann::json;
  const json region{{"address", 1}, {"length", std::uint64_t{1} << 30}, {"rkey", 0}};
  const auto with = [&](const char* key, const json& value) {
    json changed = region;
    changed[key] = value;
    return changed;
  };
  const Case staged{.suite = Suite::bandwidth, .path = Path::tcp, .direction = Direction::reverse};
  const Case direct{
      .suite = Suite::bandwidth, .path = Path::tcp_wire, .op = Op::write, .direction = Direction::reverse};
  struct Offer {
    const Case& c;
    json offer;
    const char* named;
  };
  for (const auto& [c, offer, named] :
       {Offer{staged, nullptr, "offer: an object"}, Offer{staged, 5, "offer: an object"},
        Offer{staged, json::object(), "offer.wire: missing"},
        Offer{staged, {{"wire", json::object()}}, "offer.path: missing"},
        Offer{direct, {{"wire", nullptr}, {"path", json::object()}}, "offer.wire: an object"},
        Offer{direct, {{"wire", json::object()}, {"path", nullptr}}, "offer.path: an object"},
        Offer{staged, {{"wire", json::object()}, {"path", json::object()}}, "offer.path.bounce: missing"},
        Offer{staged, {{"wire", json::object()}, {"path", {{"bounce", 5}}}}, "offer.path.bounce: an object"},
        Offer{staged,
              {{"wire", json::object()}, {"path", {{"bounce", with("rkey", -1)}}}},
              "offer.path.bounce.rkey"},
        Offer{staged,
              {{"wire", json::object()}, {"path", {{"bounce", with("rkey", std::uint64_t{1} << 32)}}}},
              "offer.path.bounce.rkey"},
        Offer{staged,
              {{"wire", json::object()}, {"path", {{"bounce", with("length", 1000)}}}},
              "offer.path.bounce.length"},
        Offer{direct, {{"wire", json::object()}, {"path", json::object()}}, "offer.path.incoming: missing"},
        Offer{direct,
              {{"wire", json::object()}, {"path", {{"incoming", with("length", 7)}}}},
              "offer.path.incoming.length"},
        Offer{direct,
              {{"wire", json::object()}, {"path", {{"incoming", with("address", "x")}}}},
              "offer.path.incoming.address"}}) {
    const std::string fault = fault_of_offer(c, offer);
    EXPECT_NE(fault.find(named), std::string::npos) << offer << ": " << fault;
    EXPECT_EQ(fault.find("json"), std::string::npos) << fault;
  }
}

TEST(Runner, ends_early_when_the_other_end_speaks) {
  const Case c{.suite = Suite::latency, .path = Path::tcp_wire};
  Payload payload;
  const auto alone = make_runner(c, Role::initiator, payload);
  wire::Listener listener({"127.0.0.1", 0});
  std::vector<wire::Socket> sockets;
  sockets.push_back(wire::connect_tcp({"127.0.0.1", listener.port()}, wire::after(5s)));
  const wire::Socket silent = listener.accept(wire::after(5s));
  alone->connect(alone->offer(), std::move(sockets));
  alone->prepare({.iterations = 1, .warmup = 0, .seed = 1});
  int control[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, control), 0);
  ASSERT_EQ(write(control[1], "e", 1), 1);
  Watch watch(control[0], 10s);
  EXPECT_THROW(alone->run(watch), PeerSpoke);
  for (const int fd : control) close(fd);
}

TEST(Runner, says_why_a_polled_write_cannot_wait_for_events) {
  Payload payload;
  const Case c{.path = Path::tcp, .op = Op::write, .completion = CompletionMode::event};
  try {
    make_runner(c, Role::initiator, payload);
    FAIL() << "nothing was thrown";
  } catch (const Unavailable& unavailable) {
    EXPECT_NE(std::string(unavailable.what()).find("no event to wait for"), std::string::npos);
  }
}

TEST(Runner, finds_a_wrong_byte_of_a_message_that_was_seen_but_not_the_one_that_was_turned_over) {
  for (const Path path : {Path::tcp, Path::tcp_wire}) {
    TwoEnds ends({.suite = Suite::visible, .path = path, .op = Op::write, .size_bytes = 100});
    ends.run({.iterations = 3, .warmup = 1, .seed = 5});
    std::byte* const received = ends.responder_payload.incoming->data();
    EXPECT_EQ(received[99], ~pattern_byte(99, 5)) << "the last byte was not turned over";
    EXPECT_EQ(ends.faults(), "");
    received[98] ^= std::byte{1};
    EXPECT_NE(ends.faults().find("byte 98"), std::string::npos) << ends.faults();
  }
}

TEST(Runner, says_why_what_is_seen_in_memory_can_be_neither_read_nor_waited_for) {
  Payload payload;
  const auto refusal = [&](Op op, CompletionMode completion) -> std::string {
    try {
      make_runner({.suite = Suite::visible, .path = Path::tcp_wire, .op = op, .completion = completion},
                  Role::initiator, payload);
    } catch (const Unavailable& unavailable) {
      return unavailable.what();
    }
    return "accepted";
  };
  EXPECT_NE(refusal(Op::read, CompletionMode::poll).find("--op send, write or write_imm"), std::string::npos);
  EXPECT_NE(refusal(Op::send, CompletionMode::event).find("no event to wait for"), std::string::npos);
  EXPECT_EQ(refusal(Op::send, CompletionMode::poll), "accepted");
  EXPECT_THROW(make_runner({.suite = Suite::visible, .path = Path::tcp_wire, .queue_pairs = 2},
                           Role::initiator, payload),
               UsageError);
}

TEST(Runner, says_why_host_memory_can_have_no_load_and_measures_it_without) {
  Payload payload;
  Case c{.suite = Suite::overlap, .path = Path::tcp, .footprint_bytes = 64};
  EXPECT_NO_THROW(make_runner(c, Role::initiator, payload));
  c.load = Load::compute;
  try {
    make_runner(c, Role::initiator, payload);
    FAIL() << "nothing was thrown";
  } catch (const Unavailable& unavailable) {
    EXPECT_NE(std::string(unavailable.what()).find("needs GPU memory"), std::string::npos);
  }
  c.suite = Suite::bandwidth;
  EXPECT_THROW(make_runner(c, Role::initiator, payload), UsageError);
}

/// Does a unit each time it is asked, and tells of itself after it is gone.
struct FakeWork {
  int starts = 0, stops = 0;
  std::uint64_t units = 0;
};
class FakeSource : public LoadSource {
 public:
  explicit FakeSource(FakeWork& work) : work_(work) {}
  void start() override {
    ++work_.starts;
    work_.units = 0;
  }
  std::uint64_t units() override { return ++work_.units; }
  void stop() override { ++work_.stops; }
  nlohmann::json describe() const override { return {{"kind", "fake"}}; }

 private:
  FakeWork& work_;
};
FakeWork fake_work;
std::unique_ptr<Runner> make_loaded_runner(const Case& c, Role role, Payload& payload) {
  using Direct = path::Direct<wire::TcpWire>;
  auto runner = std::make_unique<PathRunner<wire::TcpWire, Direct>>(c, role, payload, Direct::wire_limits(c));
  if (role == Role::initiator) runner->use_load(std::make_unique<FakeSource>(fake_work));
  return runner;
}

TEST(Runner, lets_the_load_work_from_the_preparation_to_the_end_of_every_run) {
  fake_work = {};
  TwoEnds ends({.suite = Suite::overlap, .path = Path::tcp_wire, .size_bytes = 64, .footprint_bytes = 640},
               make_loaded_runner);
  for (int run = 1; run <= 2; ++run) {
    const EndResult result = ends.run({.iterations = 50, .warmup = 2, .seed = 1});
    EXPECT_EQ(ends.faults(), "");
    ASSERT_TRUE(result.load);
    EXPECT_GT(result.load->alone_units_per_second, 0);
    EXPECT_GT(result.load->together_units_per_second, 0);
    EXPECT_EQ(fake_work.starts, run);
    EXPECT_EQ(fake_work.stops, run);
  }
}

TEST(Runner, says_what_the_peer_path_is_not_for) {
  const auto reason = [](const Case& c) -> std::string {
    Payload payload;
    try {
      make_runner(c, Role::initiator, payload);
    } catch (const Unavailable& unavailable) {
      return unavailable.what();
    }
    return "nothing was thrown";
  };
  Case c{.suite = Suite::bandwidth, .path = Path::peer, .op = Op::write, .memory = MemoryKind::cuda};
  for (const Op op : {Op::send, Op::write_imm}) {
    c.op = op;
    EXPECT_EQ(reason(c), "the peer path moves data by write and read; use --op write or read");
  }
  c.op = Op::write;
  for (const MemoryKind memory : {MemoryKind::host, MemoryKind::cuda_vmm}) {
    c.memory = memory;
    EXPECT_NE(reason(c).find("--memory is " + std::string(to_string(memory))), std::string::npos)
        << reason(c);
  }
  c.memory = MemoryKind::cuda;
  c.completion = CompletionMode::event;
  EXPECT_NE(reason(c).find("--completion poll"), std::string::npos) << reason(c);
  c.completion = CompletionMode::poll;
  c.suite = Suite::latency;
  EXPECT_NE(reason(c).find("--op read"), std::string::npos) << reason(c);
}

TEST(Runner, shares_payload_between_cases_and_grows_it) {
  Payload payload;
  const Case small{
      .suite = Suite::bandwidth, .path = Path::tcp, .size_bytes = 4096, .footprint_bytes = 65536};
  Case large = small;
  large.footprint_bytes = 1 << 20;
  const auto first = make_runner(small, Role::initiator, payload);
  const std::byte* before = payload.outgoing->data();
  const auto second = make_runner(small, Role::initiator, payload);
  EXPECT_EQ(payload.outgoing->data(), before);
  const auto third = make_runner(large, Role::initiator, payload);
  EXPECT_GE(payload.outgoing->size(), large.footprint_bytes);
  EXPECT_EQ(payload.incoming, nullptr) << "the initiator of a forward case receives nothing";
}

}  // namespace
}  // namespace gdrbench::measure
