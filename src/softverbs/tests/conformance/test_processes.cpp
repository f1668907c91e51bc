#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "departures.hpp"
#include "end.hpp"

namespace gdrbench::conformance {
namespace {

struct Introduction {
  std::uint32_t qpn;
  Remote memory;
  pid_t child;  ///< that lives on
};

// The remote of a queue pair, in a process of its own, which has a child that inherits all its descriptors.
// Opens the device itself: its own parent has it open already.
[[noreturn]] void be_the_remote(int channel) {
  std::uint32_t remote = 0;
  if (read(channel, &remote, sizeof remote) != sizeof remote) _exit(1);
  try {
    const Nic nic;
    const End end(nic);
    connect(end, remote, {.psn = Link{}.remote_psn, .remote_psn = Link{}.psn});
    const pid_t child = fork();
    if (child == 0) {
      for (;;) pause();
    }
    const Introduction own{end.number(), end.memory.remote(), child};
    if (write(channel, &own, sizeof own) != sizeof own) _exit(1);
    for (;;) pause();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "the remote: %s\n", error.what());
  }
  _exit(1);
}

class Processes : public Conformance {};

TEST_F(Processes, that_end_are_found_by_retries_though_a_child_of_theirs_lives_on) {
  if (!queue_pairs_end_with_their_process())
    GTEST_SKIP() << "they live as long as any process has the device open";
  int channel[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel), 0);
  const End end(nic());
  const pid_t remote = fork();
  ASSERT_GE(remote, 0);
  if (remote == 0) be_the_remote(channel[1]);
  close(channel[1]);  // so that reading ends, should the remote do
  const std::uint32_t number = end.number();
  Introduction other{};
  ASSERT_EQ(write(channel[0], &number, sizeof number), static_cast<ssize_t>(sizeof number));
  ASSERT_EQ(read(channel[0], &other, sizeof other), static_cast<ssize_t>(sizeof other));
  connect(end, other.qpn);
  const Send write_word{.opcode = IBV_WR_RDMA_WRITE, .list = {end.memory.sge(0, 8)}, .remote = other.memory};
  ASSERT_EQ(post(end.qp.get(), write_word), 0);
  EXPECT_EQ(outcomes(end.cq.get(), 1), successes(0, 1));

  kill(remote, SIGKILL);
  EXPECT_EQ(waitpid(remote, nullptr, 0), remote);
  EXPECT_EQ(post(end.qp.get(), write_word), 0);
  EXPECT_THAT(outcomes(end.cq.get(), 1), testing::ElementsAre(Outcome{0, IBV_WC_RETRY_EXC_ERR}));
  kill(other.child, SIGKILL);
  close(channel[0]);
}

}  // namespace
}  // namespace gdrbench::conformance
