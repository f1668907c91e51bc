#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "gdrbench/error.hpp"
#include "needs_gpu.hpp"
#include "wire/ipc_wire.hpp"

// The peer path's wire between two processes, since none opens its own IPC handles. The other one is this
// program, executed anew: CUDA does not survive a fork.
namespace gdrbench::wire {
namespace {

using nlohmann::json;

constexpr std::uint64_t most = 32 << 20;
constexpr std::uint32_t half = most / 2;
constexpr std::uint64_t seed = 7;
constexpr const char* partner_variable = "GDRBENCH_IPC_TEST_PARTNER";  ///< "CONTROL_FD SOCKET_FD GPU"

/// One JSON text a line over a socket.
class Line {
 public:
  explicit Line(int fd) : fd_(fd) {
    const timeval patience{.tv_sec = 30, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~Line() { close(fd_); }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  void say(const json& message) const {
    const std::string text = message.dump() + "\n";
    if (::send(fd_, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size()))
      throw PeerLost("the other process of the test is gone");
  }
  json hear() const {
    std::string text;
    for (char c = 0; c != '\n'; text += c)
      if (::recv(fd_, &c, 1, 0) != 1) throw PeerLost("the other process of the test is gone or silent");
    return json::parse(text);
  }

 private:
  int fd_;
};

struct End {
  explicit End(int gpu)
      : memory({.kind = MemoryKind::cuda, .length = most, .gpu = gpu}),
        wire(gpu, {.queue_pairs = 1, .send_depth = 64, .receive_depth = 4}),
        region(wire.register_memory(memory.view())) {}

  void meet(const Line& line, int socket_fd) {
    line.say({{"wire", wire.offer()}, {"region", to_json(region)}});
    const json theirs = line.hear();
    remote = remote_region(theirs.at("region"));
    std::vector<Socket> queue_pairs;
    queue_pairs.emplace_back(FileDescriptor(socket_fd));
    wire.connect(theirs.at("wire"), std::move(queue_pairs));
  }
  int post(Op op, std::uint64_t offset, std::uint32_t length, bool signaled = true) {
    return wire.post_send({.id = 1,
                           .op = op,
                           .address = region.address + offset,
                           .length = length,
                           .lkey = region.lkey,
                           .remote_address = remote.address + offset,
                           .rkey = remote.rkey,
                           .signaled = signaled});
  }
  int post_token() { return wire.post_send({.id = 2}); }
  Completion next() {
    std::array<Completion, 1> completion;
    for (const Deadline deadline = after(std::chrono::seconds(20));
         std::chrono::steady_clock::now() < deadline;)
      if (wire.poll(completion) == 1) return completion[0];
    throw Error("no completion within 20 s");
  }
  std::string fault(std::uint64_t offset, std::uint64_t length) const {
    const auto wrong = find_mismatch(memory, {.offset = offset, .length = length, .seed = seed});
    return wrong ? fmt::format("wrong byte at {}", offset + wrong->offset) : "";
  }

  Buffer memory;  // outlives the wire
  IpcWire wire;
  Region region;
  RemoteRegion remote;
};

// What the other process does on request. The answer is a fault, or an empty text.
std::string obey(End& end, const Line& line, const json& order) {
  const auto what = order.at("do").get<std::string>();
  const auto offset = order.value("offset", std::uint64_t{0});
  const auto length = order.value("length", std::uint64_t{most});
  if (what == "fill") fill_pattern(end.memory, {.offset = offset, .length = length, .seed = seed});
  if (what == "scrub") scrub(end.memory, {.length = most, .seed = seed});
  if (what == "check") return end.fault(offset, length);
  if (what == "expect") {
    if (end.wire.post_receive({.id = 9}) != 0) return "post_receive failed";
    line.say("ready");
    const Completion token = end.next();
    if (token.kind != Completion::Kind::received || token.id != 9) return "no token";
    return end.fault(offset, length);
  }
  if (what == "write") {
    if (end.post(Op::write, offset, static_cast<std::uint32_t>(length), false) != 0)
      return "post_send failed";
    if (end.post_token() != 0) return "no token can be posted";
    if (end.next().id != 2) return "no completion of the token";
  }
  return "";
}

TEST(GpuIpcPartner, answers_the_process_that_started_it) {
  const char* asked = std::getenv(partner_variable);
  int control = -1, queue_pair = -1, gpu = -1;
  if (asked == nullptr ||
      std::sscanf(asked, "%d %d %d", &control, &queue_pair, &gpu) != 3)  // NOLINT(cert-err34-c)
    GTEST_SKIP() << "the tests of GpuIpcWire start it";
  const Line line(control);
  End end(gpu);
  end.meet(line, queue_pair);
  for (json order = line.hear(); order.at("do") != "bye"; order = line.hear()) {
    try {
      line.say({{"fault", obey(end, line, order)}});
    } catch (const PeerLost&) {
      throw;
    } catch (const std::exception& error) {
      line.say({{"fault", error.what()}});
    }
  }
}

/// The parameter: how many GPUs further the other process is.
class GpuIpcWire : public NeedsGpu, public testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    NeedsGpu::SetUp();
    if (IsSkipped()) return;
    if (summary_.count <= GetParam()) GTEST_SKIP() << "needs " << GetParam() + 1 << " GPUs";
    std::array<int, 2> control{}, queue_pair{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, control.data()), 0);
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, queue_pair.data()), 0);
    for (const int mine : {control[0], queue_pair[0]}) fcntl(mine, F_SETFD, FD_CLOEXEC);
    setenv(partner_variable, fmt::format("{} {} {}", control[1], queue_pair[1], GetParam()).c_str(), 1);
    std::array<char*, 3> arguments{const_cast<char*>("partner"),
                                   const_cast<char*>("--gtest_filter=GpuIpcPartner.*"), nullptr};
    const int spawned = posix_spawn(&partner_, "/proc/self/exe", nullptr, nullptr, arguments.data(), environ);
    unsetenv(partner_variable);
    close(control[1]);
    close(queue_pair[1]);
    ASSERT_EQ(spawned, 0);
    line_ = std::make_unique<Line>(control[0]);
    try {
      end_ = std::make_unique<End>(0);
    } catch (const Unavailable& unavailable) {  // such as a sandbox without CUDA IPC
      kill(partner_, SIGKILL);
      waitpid(std::exchange(partner_, -1), nullptr, 0);
      close(queue_pair[0]);
      GTEST_SKIP() << unavailable.what();
    }
    end_->meet(*line_, queue_pair[0]);
  }

  void TearDown() override {
    if (partner_ < 0) return;
    if (end_) {
      line_->say({{"do", "bye"}});
      end_.reset();
    }
    line_.reset();
    int status = 0;
    ASSERT_EQ(waitpid(partner_, &status, 0), partner_);
    EXPECT_EQ(status, 0) << "the other process failed";
  }

  std::string ask(const json& order) {
    line_->say(order);
    return line_->hear().at("fault").get<std::string>();
  }

  pid_t partner_ = -1;
  std::unique_ptr<Line> line_;
  std::unique_ptr<End> end_;
};

TEST_P(GpuIpcWire, writes_into_the_other_process_and_nothing_beside) {
  for (const std::uint32_t length : {1U, 4097U, (1U << 20) + 1, half}) {
    SCOPED_TRACE(length);
    fill_pattern(end_->memory, {.length = length, .seed = seed});
    ASSERT_EQ(ask({{"do", "scrub"}}), "");
    ASSERT_EQ(end_->post(Op::write, 0, length), 0);
    EXPECT_EQ(end_->next().kind, Completion::Kind::sent);
    EXPECT_EQ(ask({{"do", "check"}, {"length", length}}), "");
    EXPECT_NE(ask({{"do", "check"}, {"length", length + 1}}), "") << "too much was written";
  }
}

TEST_P(GpuIpcWire, reads_from_the_other_process) {
  for (const std::uint32_t length : {1U, 4097U, (1U << 20) + 1, half}) {
    SCOPED_TRACE(length);
    ASSERT_EQ(ask({{"do", "fill"}, {"offset", 64}, {"length", length}}), "");
    scrub(end_->memory, {.length = most, .seed = seed});
    ASSERT_EQ(end_->post(Op::read, 64, length), 0);
    EXPECT_EQ(end_->next().kind, Completion::Kind::sent);
    EXPECT_EQ(end_->fault(64, length), "");
  }
}

TEST_P(GpuIpcWire, sends_a_token_only_once_the_writes_before_it_are_in_place) {
  fill_pattern(end_->memory, {.length = half, .seed = seed});
  fill_pattern(end_->memory, {.offset = half, .length = half, .seed = seed});
  ASSERT_EQ(ask({{"do", "scrub"}}), "");
  line_->say({{"do", "expect"}, {"offset", half}, {"length", half}});
  ASSERT_EQ(line_->hear(), "ready");
  // Enough before the last one that a token which overtakes is early by milliseconds.
  for (int i = 0; i < 40; ++i) ASSERT_EQ(end_->post(Op::write, 0, half, false), 0);
  ASSERT_EQ(end_->post(Op::write, half, half, false), 0);
  ASSERT_EQ(end_->post_token(), 0);
  EXPECT_EQ(end_->next().id, 2U);
  EXPECT_EQ(line_->hear().at("fault"), "");
}

TEST_P(GpuIpcWire, takes_what_the_other_process_writes_and_its_token) {
  ASSERT_EQ(ask({{"do", "fill"}, {"length", half}}), "");
  scrub(end_->memory, {.length = most, .seed = seed});
  ASSERT_EQ(end_->wire.post_receive({.id = 5}), 0);
  ASSERT_EQ(ask({{"do", "write"}, {"length", half}}), "");
  const Completion token = end_->next();
  EXPECT_EQ(token.kind, Completion::Kind::received);
  EXPECT_EQ(token.id, 5U);
  EXPECT_EQ(end_->fault(0, half), "");
}

TEST_P(GpuIpcWire, refuses_what_it_cannot_do) {
  EXPECT_EQ(end_->post(Op::send, 0, 8), EOPNOTSUPP);
  EXPECT_EQ(end_->post(Op::write_imm, 0, 8), EOPNOTSUPP);
  EXPECT_EQ(end_->post(Op::write, most - 8, 9), EINVAL) << "beyond the remote's memory";
  for (int i = 0; i < 64; ++i) ASSERT_EQ(end_->post(Op::write, 0, 8, false), 0);
  EXPECT_EQ(end_->post(Op::write, 0, 8), ENOMEM) << "the queue is full";
}

TEST_P(GpuIpcWire, names_both_gpus_and_their_link) {
  const IpcProof proof = end_->wire.describe();
  EXPECT_EQ(proof.gpu_uuid, gpu_summary(0).uuid);
  EXPECT_EQ(proof.remote_gpu_uuid, gpu_summary(GetParam()).uuid);
  EXPECT_EQ(proof.link == "same gpu", GetParam() == 0) << proof.link;
}

INSTANTIATE_TEST_SUITE_P(Gpus, GpuIpcWire, testing::Values(0, 1), [](const auto& further) {
  return further.param == 0 ? "to_the_same_gpu" : "to_the_next_gpu";
});

TEST(IpcWireWithoutGpu, is_unavailable_with_the_reason) {
  const GpuSummary summary = gpu_summary();
  if (summary.unavailable.empty()) GTEST_SKIP() << "there is a GPU";
  EXPECT_THROW(IpcWire(0, WireLimits{}), Unavailable);
}

}  // namespace
}  // namespace gdrbench::wire
