#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "link/stream_socket.hpp"
#include "links.hpp"

namespace gdrbench::softverbs {
namespace {

using namespace test;

sockaddr_in6 loopback(std::uint16_t port) {
  sockaddr_in6 address = address_of(loopback_gid(), 0, 0);
  address.sin6_port = htons(port);
  return address;
}

/// A remote that speaks by hand.
class RawClient {
 public:
  RawClient(Process& to, std::span<const std::byte> bytes) : to_(to), socket_(open_stream_socket()) {
    EXPECT_TRUE(connect_to(socket_, to.address()) || errno == EINPROGRESS);
    to.loop.wait(Clock::now() + 10ms);
    say(bytes);
  }
  RawClient(Process& to, const Hello& hello) : RawClient(to, std::as_bytes(std::span(&hello, 1))) {}

  void say(std::span<const std::byte> bytes) const {
    if (!bytes.empty()) {
      EXPECT_EQ(send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), ssize_t(bytes.size()));
    }
  }

  /// What comes until the connection closes, at most `most` bytes.
  std::string hear(std::size_t most = 4096) {
    std::string heard;
    wait_for({&to_.loop}, [&] {
      char byte;
      ssize_t got = 0;
      while (heard.size() < most && (got = recv(socket_.get(), &byte, 1, MSG_DONTWAIT)) == 1) heard += byte;
      return got == 0 || heard.size() == most || (got < 0 && errno != EAGAIN);
    });
    return heard;
  }

  std::optional<Reply> answer() {
    const std::string heard = hear(sizeof(Reply));
    if (heard.size() != sizeof(Reply)) return std::nullopt;
    Reply reply;
    std::memcpy(&reply, heard.data(), sizeof reply);
    return reply;
  }

  Descriptor& socket() { return socket_; }

 private:
  Process& to_;
  Descriptor socket_;
};

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(SoftverbsHandshake, TheHelloArrivesAsItWasSent) {
  Process here, there;
  Hello hello;
  hello.source_qpn = 0x123456;
  hello.destination_qpn = 0xfedcba;
  hello.psn = 77;
  hello.source_gid = loopback_gid();
  std::optional<Hello> arrived;
  const auto refuse = [&] {
    if (there.requests.empty()) return;
    arrived = there.requests.back().hello();
    there.requests.back().refuse(Refusal::busy);
    there.requests.pop_back();
  };
  dial(here, there.address(), refuse, {&there.loop}, hello);
  ASSERT_TRUE(arrived);
  EXPECT_EQ(arrived->source_qpn, hello.source_qpn);
  EXPECT_EQ(arrived->destination_qpn, hello.destination_qpn);
  EXPECT_EQ(arrived->psn, hello.psn);
  EXPECT_EQ(std::memcmp(arrived->source_gid.raw, hello.source_gid.raw, 16), 0);
  EXPECT_EQ(arrived->locality.pid, getpid());
}

TEST(SoftverbsHandshake, EveryRefusalReachesTheDialer) {
  Process here, there;
  for (auto reason = std::uint32_t(Refusal::malformed); reason <= std::uint32_t(Refusal::busy); ++reason) {
    const auto refuse = [&] {
      if (there.requests.empty()) return;
      there.requests.back().refuse(Refusal(reason));
      there.requests.pop_back();
    };
    const DialResult result = dial(here, there.address(), refuse, {&there.loop});
    EXPECT_EQ(result.refusal, Refusal(reason));
    EXPECT_EQ(result.link, nullptr);
    EXPECT_EQ(result.error, "");
    EXPECT_STRNE(to_string(result.refusal), to_string(Refusal::none));
  }
}

TEST(SoftverbsHandshake, WhatIsNoHelloOfThisVersionIsRefusedAndNothingElse) {
  Process there;
  std::vector<Hello> wrong(10);
  wrong[0].magic[7] = 'S';
  wrong[1].version = hello_version + 1;
  wrong[2].byte_order = 0x04030201;
  wrong[3].kind = LinkKind{4};
  wrong[4].source_qpn = 1U << 24;
  wrong[5].destination_qpn = 1U << 24;
  wrong[6].psn = 1U << 24;
  wrong[7].locality.boot_id.fill('x');
  wrong[8].locality.rings = -2;
  wrong[9].kind = LinkKind::datagrams;
  wrong[9].source_qpn = 1;
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    RawClient client(there, wrong[i]);
    const auto reply = client.answer();
    ASSERT_TRUE(reply) << i;
    EXPECT_EQ(reply->refusal, Refusal::malformed) << i;
    EXPECT_EQ(client.hear(), "") << "closed";
  }
  EXPECT_TRUE(there.requests.empty());
  const RawClient good(there, Hello{});
  EXPECT_TRUE(wait_for({&there.loop}, [&] { return !there.requests.empty(); }));
}

TEST(SoftverbsHandshake, GarbageIsRefusedAtItsFirstBytes) {
  Process there;
  RawClient client(there, bytes_of("GET / HTTP/1.1\r\n"));
  const auto reply = client.answer();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->refusal, Refusal::malformed);
  Process here;
  EXPECT_NE(connect(here, there).dialing, nullptr);
}

TEST(SoftverbsHandshake, HalfAHelloThenSilenceIsClosedAfter5Seconds) {
  Process there;
  const Hello hello;
  RawClient client(there, std::as_bytes(std::span(&hello, 1)).first(sizeof hello / 2));
  for (int i = 0; i < 10; ++i) there.loop.wait(Clock::now() + 1ms);
  char byte;
  there.listener.expire(Clock::now() + 4s);
  EXPECT_EQ(recv(client.socket().get(), &byte, 1, MSG_DONTWAIT), -1) << "not yet";
  there.listener.expire(Clock::now() + 6s);
  EXPECT_EQ(client.hear(), "");
  EXPECT_TRUE(there.requests.empty());
}

TEST(SoftverbsHandshake, AHelloMayComeByteByByte) {
  Process there;
  const Hello hello;
  const auto bytes = std::as_bytes(std::span(&hello, 1));
  RawClient client(there, bytes.first(1));
  for (std::size_t i = 1; i < bytes.size(); ++i) {
    EXPECT_TRUE(there.requests.empty());
    client.say(bytes.subspan(i, 1));
    there.loop.wait(Clock::now());
  }
  EXPECT_TRUE(wait_for({&there.loop}, [&] { return !there.requests.empty(); }));
}

TEST(SoftverbsHandshake, MoreThan256WaitingConnectionsAreTurnedAway) {
  Process there;
  std::vector<RawClient> waiting;
  waiting.reserve(256);
  for (int i = 0; i < 256; ++i) waiting.emplace_back(there, bytes_of("gdr"));
  for (int i = 0; i < 10; ++i) there.loop.wait(Clock::now());
  RawClient last(there, std::span<const std::byte>{});
  const auto reply = last.answer();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->refusal, Refusal::busy);
  there.listener.expire(Clock::now() + 6s);
  Process here;
  EXPECT_NE(connect(here, there).dialing, nullptr) << "there is room again";
}

TEST(SoftverbsHandshake, ARemoteThatClaimsAnotherProcessGetsNoSharedMemory) {
  Process there;
  const auto rings = RingPair::offer(1);
  Hello hello;
  hello.locality = our_locality(there.loop.doorbell(), rings->descriptor());
  hello.locality.cookie ^= 1;
  RawClient client(there, hello);
  ASSERT_TRUE(wait_for({&there.loop}, [&] { return !there.requests.empty(); }));
  const auto link = there.requests.front().accept();
  ASSERT_NE(link, nullptr);
  EXPECT_FALSE(link->can_pull());
  const auto reply = client.answer();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->shares_rings, 0u);
  EXPECT_EQ(reply->can_pull, 0u);
  EXPECT_EQ(reply->locality.doorbell, there.loop.doorbell());

  const FrameHeader header = send_header(0, 0);
  client.say(std::as_bytes(std::span(&header, 1)));
  EXPECT_TRUE(wait_for({&there.loop}, [&] { return try_take(*link, 0, 0); })) << "the socket serves";
}

TEST(SoftverbsHandshake, ARemoteOfAnotherHostOrNamespaceGetsNoSharedMemory) {
  for (const bool other_host : {true, false}) {
    Process there;
    const Locality ours = our_locality(-1, -1);
    const auto rings = RingPair::offer(ours.cookie);
    Hello hello;
    hello.locality = our_locality(there.loop.doorbell(), rings->descriptor());
    other_host ? void(hello.locality.boot_id[0] ^= 1) : void(hello.locality.pid_namespace ^= 1);
    RawClient client(there, hello);
    ASSERT_TRUE(wait_for({&there.loop}, [&] { return !there.requests.empty(); }));
    const auto link = there.requests.front().accept();
    ASSERT_NE(link, nullptr);
    const auto reply = client.answer();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->shares_rings + reply->can_pull, 0u);
    EXPECT_EQ(reply->locality.pid, 0) << "nothing of use to that remote is told";
  }
}

TEST(SoftverbsHandshake, ACallerThatHungUpIsNotAccepted) {
  Process there;
  RawClient client(there, Hello{});
  ASSERT_TRUE(wait_for({&there.loop}, [&] { return !there.requests.empty(); }));
  client.socket() = Descriptor();
  EXPECT_EQ(there.requests.front().accept(), nullptr);
}

TEST(SoftverbsHandshake, AnUnansweredCallerSeesTheConnectionClose) {
  Process here, there;
  const DialResult result = dial(here, there.address(), [&] { there.requests.clear(); }, {&there.loop});
  EXPECT_EQ(result.link, nullptr);
  EXPECT_EQ(result.error, to_string(there.address()) + " closed the connection without an answer");
}

TEST(SoftverbsHandshake, APortWhereNobodyListensIsAnErrorAtOnce) {
  Process here;
  const Descriptor taken = open_stream_socket();  // bound, but listens to nobody
  ASSERT_TRUE(bind_to(taken, loopback(0)));
  sockaddr_in6 nobody{};
  socklen_t size = sizeof nobody;
  getsockname(taken.get(), reinterpret_cast<sockaddr*>(&nobody), &size);
  nobody = loopback(ntohs(nobody.sin6_port));
  const DialResult result = dial(here, nobody, [] {}, {});
  EXPECT_EQ(result.link, nullptr);
  EXPECT_EQ(result.error, "connect to " + to_string(nobody) + ": ECONNREFUSED");
}

TEST(SoftverbsHandshake, ASilentRemoteIsGivenUpAtTheDeadline) {
  Process here;
  const ListeningSlot silent = claim_slot();
  const sockaddr_in6 address = address_of(loopback_gid(), silent.slot, 0);
  const auto deadline = Clock::now() + 1h;
  std::string error;
  here.dialer.dial({}, {}, address, deadline, [&](DialResult result) { error = result.error; });
  for (int i = 0; i < 10; ++i) here.loop.wait(Clock::now() + 1ms);
  here.dialer.expire(deadline - 1s);
  EXPECT_EQ(error, "");
  here.dialer.expire(deadline);
  EXPECT_EQ(error, "wait for the answer of " + to_string(address) + ": ETIMEDOUT");
}

TEST(SoftverbsHandshake, ARemoteThatAnswersOtherwiseIsNotASoftverbsRemote) {
  Process here;
  const ListeningSlot other = claim_slot();
  const sockaddr_in6 address = address_of(loopback_gid(), other.slot, 0);
  Descriptor accepted;
  const auto answer = [&] {
    if (accepted) return;
    accepted = Descriptor(accept4(other.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!accepted) return;
    const std::string banner(sizeof(Reply), '2');
    EXPECT_EQ(send(accepted.get(), banner.data(), banner.size(), MSG_NOSIGNAL), ssize_t(banner.size()));
  };
  EXPECT_EQ(dial(here, address, answer, {}).error,
            to_string(address) + " does not answer in the way of softverbs");
}

TEST(SoftverbsHandshake, TheSourceAddressIsKept) {
  Process here;
  const ListeningSlot other = claim_slot();
  sockaddr_in6 source = loopback(0);
  source.sin6_addr.s6_addr[15] = 2;
  sockaddr_in6 seen{};
  const auto look = [&] {
    socklen_t size = sizeof seen;
    auto* const address = reinterpret_cast<sockaddr*>(&seen);
    const Descriptor accepted(accept4(other.socket.get(), address, &size, SOCK_CLOEXEC));
  };
  dial(here, address_of(loopback_gid(), other.slot, 0), look, {}, {}, source);
  EXPECT_EQ(std::memcmp(&seen.sin6_addr, &source.sin6_addr, 16), 0) << to_string(seen);

  source = loopback(0);
  source.sin6_addr.s6_addr[12] = 192;  // 192.0.0.1
  EXPECT_EQ(dial(
                here, loopback(1), [] {}, {}, {}, source)
                .error,
            "bind to 192.0.0.1:0: EADDRNOTAVAIL");
}

TEST(SoftverbsHandshake, ABadTransportIsTheErrorOfTheDial) {
  Process here, there;
  const Environment transport("GDRBENCH_SOFTVERBS_TRANSPORT", "shm");
  const DialResult result = dial(here, there.address(), [] {}, {&there.loop});
  EXPECT_NE(result.error.find("GDRBENCH_SOFTVERBS_TRANSPORT=shm"), std::string::npos) << result.error;
}

#ifndef __SANITIZE_ADDRESS__  // the sanitizer itself opens files
TEST(SoftverbsHandshake, WithoutDescriptorsConnectionsWaitAndNothingSpins) {
  Process there;
  const Descriptor client = open_stream_socket();
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const Descriptor lowest_free(dup(0));
  const rlimit none{rlim_t(lowest_free.get()), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  connect_to(client, there.address());
  there.loop.wait(Clock::now() + 100ms);  // finds that it cannot accept
  const auto begin = Clock::now();
  there.loop.wait(begin + 30ms);
  const auto slept = Clock::now() - begin;
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_GE(slept, 30ms);

  there.listener.expire(Clock::now());
  const Hello hello;
  EXPECT_EQ(send(client.get(), &hello, sizeof hello, MSG_NOSIGNAL), ssize_t(sizeof hello));
  EXPECT_TRUE(wait_for({&there.loop}, [&] { return !there.requests.empty(); }));
}
#endif

}  // namespace
}  // namespace gdrbench::softverbs
