#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "gdrbench/error.hpp"
#include "measure/path_runner.hpp"
#include "measure/runner.hpp"
#include "path/direct.hpp"
#include "two_ends.hpp"
#include "wire/tcp_wire.hpp"

namespace gdrbench::measure {
namespace {

/// A TCP wire that must split messages, as RDMA devices must split long ones.
class ShortTcpWire : public wire::TcpWire {
 public:
  using TcpWire::TcpWire;
  std::uint64_t max_message() const { return 1000; }
};

std::unique_ptr<Runner> make_short_runner(const Case& c, Role role, Payload& payload) {
  using Short = path::Direct<ShortTcpWire>;
  return std::make_unique<PathRunner<ShortTcpWire, Short>>(c, role, payload, Short::wire_limits(c));
}

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

TEST(Runner, ends_early_when_a_control_message_comes) {
  const Case c{.suite = Suite::latency, .path = Path::tcp_wire};
  Payload payload;
  const auto alone = make_runner(c, Role::initiator, payload);
  wire::Listener listener({"127.0.0.1", 0});
  std::vector<wire::Socket> sockets;
  sockets.push_back(wire::connect_tcp({"127.0.0.1", listener.port()}, after(5s)));
  const wire::Socket silent = listener.accept(after(5s));
  alone->connect(link_to(1, alone->offer(), std::move(sockets)));
  alone->prepare({.iterations = 1, .warmup = 0, .seed = 1});
  int control[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, control), 0);
  ASSERT_EQ(write(control[1], "e", 1), 1);
  Watch watch(control[0], 10s);
  EXPECT_THROW(alone->run(watch), EndedEarly);
  for (const int fd : control) close(fd);
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
  LoadProof describe() const override { return {.kind = Load::compute, .gpu_uuid = ""}; }

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
    const RankResult result = ends.run({.iterations = 50, .warmup = 2, .seed = 1});
    EXPECT_EQ(ends.faults(), "");
    ASSERT_TRUE(result.load);
    EXPECT_GT(result.load->alone_units_per_second, 0);
    EXPECT_GT(result.load->together_units_per_second, 0);
    EXPECT_EQ(fake_work.starts, run);
    EXPECT_EQ(fake_work.stops, run);
  }
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
