#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <vector>

#include "gdrbench/error.hpp"
#include "gdrbench/interrupt.hpp"
#include "wire/socket.hpp"

namespace gdrbench::wire {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Pair {
  explicit Pair(const std::string& host = "127.0.0.1")
      : listener({host, 0}),
        near(connect_tcp({host, listener.port()}, after(2s))),
        far(listener.accept(after(2s))) {}
  Listener listener;
  Socket near;
  Socket far;
};

template <class E, class Call>
std::string thrown(Call call) {
  try {
    call();
  } catch (const E& fault) {
    return fault.what();
  }
  ADD_FAILURE() << "nothing thrown";
  return "";
}

std::uint16_t port_without_listener() {
  const Listener listener({"127.0.0.1", 0});
  return listener.port();
}

int option(const Socket& socket, int level, int name) {
  int value = 0;
  socklen_t length = sizeof value;
  getsockopt(socket.fd(), level, name, &value, &length);
  return value;
}

TEST(Socket, CarriesMoreThanTheKernelBuffers) {
  Pair pair;
  std::vector<std::byte> sent(16 << 20);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7 + i / 251);
  std::vector<std::byte> received(sent.size());
  std::thread receiver([&] { pair.far.receive_all(received, after(10s), "test"); });
  pair.near.send_all(sent, after(10s), "test");
  receiver.join();
  EXPECT_EQ(sent, received);
}

TEST(Socket, IsNonBlockingAndWithoutDelayOnBothEnds) {
  Pair pair;
  for (const Socket* socket : {&pair.near, &pair.far}) {
    EXPECT_NE(option(*socket, IPPROTO_TCP, TCP_NODELAY), 0);
    char byte = 0;
    EXPECT_EQ(::recv(socket->fd(), &byte, 1, 0), -1);
    EXPECT_EQ(errno, EAGAIN);
  }
}

TEST(Socket, ASilentPeerIsLostAtTheDeadline) {
  Pair pair;
  std::array<std::byte, 4> data{};
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(thrown<PeerLost>([&] { pair.near.receive_all(data, after(250ms), "waiting for news"); }),
              AllOf(StartsWith("waiting for news"), HasSubstr("timed out")));
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took, 250ms);
  EXPECT_LT(took, 2s);
}

TEST(Socket, APeerThatReadsNothingIsLostAtTheDeadline) {
  Pair pair;
  const std::vector<std::byte> data(64 << 20);
  EXPECT_THAT(thrown<PeerLost>([&] { pair.near.send_all(data, after(200ms), "sending"); }),
              HasSubstr("takes no data"));
}

TEST(Socket, AClosedPeerIsLostAtOnceAndSendingRaisesNoSignal) {
  Pair pair;
  pair.far = Socket();
  std::array<std::byte, 4> data{};
  EXPECT_THAT(thrown<PeerLost>([&] { pair.near.receive_all(data, after(5s), "test"); }), HasSubstr("closed"));
  const auto send_often = [&] {
    for (int i = 0; i < 100; ++i) pair.near.send_all(data, after(1s), "test");
  };
  EXPECT_THAT(thrown<PeerLost>(send_often), HasSubstr("EPIPE"));
}

TEST(Socket, AddressesHaveBracketsAroundIpv6) {
  Pair v4;
  EXPECT_EQ(v4.near.remote_address(), "127.0.0.1:" + std::to_string(v4.listener.port()));
  EXPECT_EQ(v4.near.local_address(), v4.far.remote_address());
  EXPECT_EQ(v4.near.local_host(), "127.0.0.1");
  if (::access("/proc/net/if_inet6", F_OK) != 0) GTEST_SKIP() << "no IPv6 here";
  Pair v6("::1");
  EXPECT_EQ(v6.near.remote_address(), "[::1]:" + std::to_string(v6.listener.port()));
  EXPECT_EQ(v6.near.remote_host(), "::1");
  EXPECT_TRUE(connect_tcp({"[::1]", v6.listener.port()}, after(2s)));
}

TEST(Socket, AnIpv4PeerOfAnIpv6ListenerHasItsIpv4Address) {
  if (::access("/proc/net/if_inet6", F_OK) != 0) GTEST_SKIP() << "no IPv6 here";
  Listener listener({"::", 0});
  Socket near = connect_tcp({"127.0.0.1", listener.port()}, after(2s));
  Socket far = listener.accept(after(2s));
  EXPECT_EQ(far.remote_host(), "127.0.0.1");
  EXPECT_EQ(far.remote_address(), near.local_address());
}

TEST(Connect, ARefusalSaysWhatToStart) {
  const std::uint16_t port = port_without_listener();
  EXPECT_THAT(
      thrown<SystemError>([&] {
        connect_tcp({"127.0.0.1", port}, after(2s));
      }),
      AllOf(HasSubstr("ECONNREFUSED"), HasSubstr("nothing listens on 127.0.0.1:" + std::to_string(port)),
            HasSubstr("gdrbench serve")));
}

TEST(Connect, TriesEveryAddressOfAName) {
  Listener listener({"127.0.0.1", 0});  // where localhost is ::1 too, that one refuses
  EXPECT_TRUE(connect_tcp({"localhost", listener.port()}, after(5s)));
}

TEST(Connect, AnUnknownNameIsTheUsersMistake) {
  EXPECT_THAT(thrown<UsageError>([] {
                connect_tcp({"no such host", 7471}, after(20s));
              }),
              AllOf(HasSubstr("'no such host'"), HasSubstr("spelling")));
}

TEST(Connect, AListenerThatAcceptsNobodyEndsAtTheDeadline) {
  // A full accept queue drops further handshakes, as a firewall would.
  FileDescriptor full(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof any;
  ASSERT_EQ(::bind(full.get(), reinterpret_cast<sockaddr*>(&any), length), 0);
  ASSERT_EQ(::listen(full.get(), 0), 0);
  ASSERT_EQ(::getsockname(full.get(), reinterpret_cast<sockaddr*>(&any), &length), 0);
  std::vector<Socket> queued;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(thrown<SystemError>([&] {
                for (int i = 0; i < 10; ++i)
                  queued.push_back(connect_tcp({"127.0.0.1", ntohs(any.sin_port)}, after(300ms)));
              }),
              AllOf(HasSubstr("ETIMEDOUT"), HasSubstr("firewall")));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s);
}

TEST(Listener, ATakenPortNamesTheFlag) {
  const Listener first({"127.0.0.1", 0});
  EXPECT_THAT(thrown<SystemError>([&] {
                Listener({"127.0.0.1", first.port()});
              }),
              AllOf(HasSubstr("EADDRINUSE"), HasSubstr("127.0.0.1:" + std::to_string(first.port())),
                    HasSubstr("--port")));
}

TEST(Listener, AForeignAddressNamesTheFlag) {
  EXPECT_THAT(thrown<SystemError>([] {
                Listener({"192.0.2.1", 0});
              }),
              AllOf(HasSubstr("EADDRNOTAVAIL"), HasSubstr("--bind")));
}

TEST(Listener, ItsPortMayBeTakenAgainAtOnce) {
  std::uint16_t port = 0;
  {
    Pair pair;
    port = pair.listener.port();
    pair.far = Socket();  // the serving end closes first and keeps the port in TIME_WAIT
    std::array<std::byte, 1> data{};
    EXPECT_THROW(pair.near.receive_all(data, after(1s), "test"), PeerLost);
  }
  EXPECT_NO_THROW(Listener({"127.0.0.1", port}));
}

TEST(Listener, AnEmptySocketSaysThatNobodyCame) {
  Listener listener({"127.0.0.1", 0});
  EXPECT_FALSE(listener.accept(after(50ms)));
}

// In a process of its own, since the signal cannot be taken back.
TEST(WaitDeathTest, ASignalToAnyThreadEndsAWait) {
  EXPECT_EXIT(
      {
        handle_termination_signals();
        std::thread killer([] {
          std::this_thread::sleep_for(100ms);
          std::raise(SIGTERM);  // delivered to this thread
        });
        const auto begin = std::chrono::steady_clock::now();
        try {
          Listener listener({"127.0.0.1", 0});
          wait_for(listener.fd(), POLLIN, after(20s));
        } catch (const Interrupted&) {
          killer.join();
          std::_Exit(std::chrono::steady_clock::now() - begin < 2s ? 7 : 8);
        }
        std::_Exit(9);
      },
      ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace gdrbench::wire
