#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "gdrbench/error.hpp"
#include "wire/tcp_wire.hpp"

namespace gdrbench::wire {
namespace {

using namespace std::chrono_literals;

/// Two connected wires in this process; the parameter says by how many threads each moves its sockets.
class TcpWires : public testing::TestWithParam<std::uint32_t> {
 protected:
  static constexpr std::uint32_t queue_pairs = 2;

  TcpWires() {
    const WireLimits limits{.queue_pairs = queue_pairs,
                            .send_depth = 4,
                            .receive_depth = 4,
                            .completion = CompletionMode::event,
                            .threads = GetParam()};
    a_.emplace(limits);
    b_.emplace(limits);
    region_a_ = a_->register_memory({.address = memory_a_.data(), .length = memory_a_.size()});
    region_b_ = b_->register_memory({.address = memory_b_.data(), .length = memory_b_.size()});
    Listener listener({"127.0.0.1", 0});
    std::vector<Socket> ours, theirs;
    for (std::uint32_t queue_pair = 0; queue_pair < queue_pairs; ++queue_pair) {
      ours.push_back(connect_tcp({"127.0.0.1", listener.port()}, after(5s)));
      theirs.push_back(listener.accept(after(5s)));
    }
    a_->connect({}, std::move(ours));
    b_->connect({}, std::move(theirs));
  }

  SendRequest send(std::uint32_t queue_pair, std::uint64_t id, std::uint32_t length) {
    return {.id = id, .queue_pair = queue_pair, .address = memory_a_.data() + id, .length = length};
  }
  SendRequest write(std::uint64_t from, std::uint64_t to, std::uint32_t length) {
    SendRequest request = send(0, from, length);
    request.op = Op::write;
    request.remote_address = reinterpret_cast<std::uint64_t>(memory_b_.data()) + to;
    request.rkey = region_b_.rkey;
    return request;
  }
  ReceiveRequest receive(std::uint32_t queue_pair, std::uint64_t id, std::uint32_t length) {
    return {.id = id, .queue_pair = queue_pair, .address = memory_b_.data() + id, .length = length};
  }
  /// Sleeps in wait() until `wire` has completed something. None within 5 s: so long does a sleeper sleep
  /// that nobody wakes.
  static std::optional<Completion> next(TcpWire& wire) {
    Completion one;
    for (const Deadline deadline = after(5s); std::chrono::steady_clock::now() < deadline;) {
      if (wire.poll({&one, 1}) == 1) return one;
      wire.wait(-1, 5000);
    }
    return std::nullopt;
  }

  static long processor_ms(const rusage& used) {
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 +
           (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
  }

  std::vector<std::byte> memory_a_{4096}, memory_b_{4096};
  Region region_a_, region_b_;
  std::optional<TcpWire> a_, b_;  // after the memory: they go first
};
INSTANTIATE_TEST_SUITE_P(Threads, TcpWires, testing::Values(0, 1, 2), testing::PrintToStringParamName());

TEST_P(TcpWires, wakes_a_sleeper_for_each_message_on_each_lane) {
  for (std::uint32_t queue_pair = 0; queue_pair < queue_pairs; ++queue_pair)
    for (std::uint64_t id = 1; id <= 3; ++id) {
      memory_a_[id] = static_cast<std::byte>(10 * queue_pair + id);
      ASSERT_EQ(b_->post_receive(receive(queue_pair, id, 1)), 0);
      ASSERT_EQ(a_->post_send(send(queue_pair, id, 1)), 0);
      const std::optional<Completion> arrived = next(*b_), sent = next(*a_);
      ASSERT_TRUE(arrived && sent);
      EXPECT_EQ(arrived->id, id);
      EXPECT_EQ(arrived->queue_pair, queue_pair);
      EXPECT_EQ(sent->id, id);
      EXPECT_EQ(memory_b_[id], memory_a_[id]);
    }
}

TEST_P(TcpWires, refuses_more_requests_than_a_queue_holds_until_some_complete) {
  // Nobody receives, and so many bytes do not fit into the sockets' buffers.
  std::vector<std::byte> much(std::size_t{64} << 20);
  SendRequest large{.id = 1, .address = much.data(), .length = static_cast<std::uint32_t>(much.size())};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(a_->post_send(large), 0);
  EXPECT_EQ(a_->post_send(large), ENOMEM);
  for (std::uint64_t id = 0; id < 4; ++id) EXPECT_EQ(b_->post_receive(receive(1, id, 1)), 0);
  EXPECT_EQ(b_->post_receive(receive(1, 4, 1)), ENOMEM);
  EXPECT_EQ(a_->post_send(send(1, 1, 1)), 0) << "the queue of another queue pair";
  ASSERT_TRUE(next(*b_));
  EXPECT_EQ(b_->post_receive(receive(1, 4, 1)), 0) << "one has completed";
  a_.reset();  // before `much` goes
}

TEST_P(TcpWires, writes_aligned_words_and_all_else_where_they_were_sent) {
  for (std::size_t i = 0; i < memory_a_.size(); ++i) memory_a_[i] = static_cast<std::byte>(i * 7);
  const std::uint64_t base = (8 - reinterpret_cast<std::uint64_t>(memory_b_.data()) % 8) % 8;
  std::uint64_t to = base;
  for (const std::uint64_t offset : {0, 1, 3})  // an aligned word among them
    for (const std::uint32_t length : {8, 7, 9}) {
      ASSERT_EQ(a_->post_send(write(100, to + offset, length)), 0);
      ASSERT_TRUE(next(*a_));
      ASSERT_EQ(b_->post_receive(receive(0, 4000, 1)), 0);
      ASSERT_EQ(a_->post_send(send(0, 0, 1)), 0);  // follows the write
      ASSERT_TRUE(next(*a_) && next(*b_));
      EXPECT_EQ(std::memcmp(memory_b_.data() + to + offset, memory_a_.data() + 100, length), 0)
          << length << " bytes at " << offset;
      EXPECT_EQ(memory_b_[to + offset + length], std::byte{0}) << length << " bytes at " << offset;
      to += 64;
    }
}

TEST_P(TcpWires, goes_on_telling_that_the_peer_is_gone) {
  a_.reset();
  EXPECT_THROW(next(*b_), PeerLost);
  EXPECT_THROW(next(*b_), PeerLost);
}

TEST_P(TcpWires, ends_while_the_peer_takes_nothing) {
  std::vector<std::byte> much(std::size_t{64} << 20);
  for (int i = 0; i < 4; ++i)
    a_->post_send({.id = 1, .address = much.data(), .length = static_cast<std::uint32_t>(much.size())});
  std::this_thread::sleep_for(20ms);
  a_.reset();
  SUCCEED() << "the destructor has returned";
}

TEST_P(TcpWires, sleeps_while_a_message_waits_for_a_receive) {
  // More than is read ahead, so that the socket stays readable.
  std::vector<std::byte> much(std::size_t{64} << 10), place(much.size());
  const auto length = static_cast<std::uint32_t>(much.size());
  ASSERT_EQ(a_->post_send({.id = 1, .address = much.data(), .length = length}), 0);
  ASSERT_TRUE(next(*a_));
  Completion none;
  for (int i = 0; i < 3; ++i) {  // it has come afterwards
    EXPECT_EQ(b_->poll({&none, 1}), 0U);
    b_->wait(-1, 50);
  }
  const Deadline asleep_until = after(250ms);
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  b_->wait(-1, 300);
  getrusage(RUSAGE_SELF, &after);
  EXPECT_GE(std::chrono::steady_clock::now(), asleep_until);
  EXPECT_LT(processor_ms(after) - processor_ms(before), 50) << "in 300 ms of sleep";
  ASSERT_EQ(b_->post_receive({.id = 2, .address = place.data(), .length = length}), 0);
  EXPECT_TRUE(next(*b_)) << "it was there all the time";
}

TEST_P(TcpWires, counts_what_it_moved) {
  ASSERT_EQ(b_->post_receive(receive(1, 1, 100)), 0);
  ASSERT_EQ(a_->post_send(send(1, 1, 100)), 0);
  ASSERT_TRUE(next(*a_) && next(*b_));
  EXPECT_EQ(a_->bytes_moved(), 100 + sizeof(FrameHeader));
  EXPECT_EQ(b_->bytes_moved(), 100 + sizeof(FrameHeader));
  EXPECT_EQ(a_->describe().threads, GetParam());
}

}  // namespace
}  // namespace gdrbench::wire
