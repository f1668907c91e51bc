#include <gmock/gmock.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <future>
#include <optional>

#include "two_wires.hpp"

namespace gdrbench::wire {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using testing::AllOf;
using testing::HasSubstr;

class VerbsTransfer : public NeedsRdma, public testing::WithParamInterface<Op> {
 protected:
  void SetUp() override {
    NeedsRdma::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    pair_.emplace(EndSettings{.limits = {.queue_pairs = queue_pairs, .inline_bytes = 220},
                              .memory_bytes = queue_pairs * stride});
  }

  static constexpr std::uint32_t queue_pairs = 3;
  static constexpr std::uint64_t lead = 5;  ///< messages start at odd addresses
  static constexpr std::uint64_t room = std::uint64_t{8} << 20;
  static constexpr std::uint64_t stride = room + 4096;

  // Moves one message on every queue pair, each of its own pattern and length, and checks bytes and
  // completions.
  void move(std::uint32_t length, bool inline_data) {
    const Op op = GetParam();
    const End& source = op == Op::read ? pair_->right : pair_->left;
    const End& target = op == Op::read ? pair_->left : pair_->right;
    for (std::uint32_t queue_pair = 0; queue_pair < queue_pairs; ++queue_pair) {
      fill_pattern(source.memory, {.offset = offset(queue_pair), .length = length, .seed = ++seed_});
      scrub(target.memory, {.offset = offset(queue_pair) - lead, .length = length + 2 * lead, .seed = seed_});
    }
    const std::vector<std::byte> before(target.memory.data(), target.memory.data() + target.memory.size());
    const bool two_sided = op == Op::send || op == Op::write_imm;
    for (std::uint32_t queue_pair = 0; queue_pair < queue_pairs; ++queue_pair) {
      const std::uint32_t receive_length = op == Op::send ? length : 0;
      // Inline data goes first: the retry after an RNR NAK then must not read what memory holds by now.
      if (two_sided && !inline_data) post_receive(queue_pair, receive_length);
      post(queue_pair, length, inline_data);
      if (two_sided && inline_data) post_receive(queue_pair, receive_length);
    }
    check_sent();
    if (two_sided) check_received(length);
    std::array<Completion, 1> more;
    EXPECT_EQ(pair_->left.wire.poll(more), 0);
    EXPECT_EQ(pair_->right.wire.poll(more), 0);
    for (std::uint32_t queue_pair = 0; queue_pair < queue_pairs; ++queue_pair)
      EXPECT_FALSE(find_mismatch(
          target.memory,
          {.offset = offset(queue_pair), .length = length, .seed = seed_ - queue_pairs + 1 + queue_pair}))
          << "queue pair " << queue_pair;
    check_untouched(before, target.memory.data(), length);
  }

  std::optional<Pair> pair_;

 private:
  static std::uint64_t offset(std::uint32_t queue_pair) { return queue_pair * stride + lead; }

  void post_receive(std::uint32_t queue_pair, std::uint32_t length) {
    ReceiveRequest request = pair_->right.receive(100 + queue_pair, offset(queue_pair), length);
    request.queue_pair = queue_pair;
    ASSERT_EQ(pair_->right.wire.post_receive(request), 0);
  }

  void post(std::uint32_t queue_pair, std::uint32_t length, bool inline_data) {
    SendRequest request =
        pair_->left.one_sided(GetParam(), 200 + queue_pair, pair_->right, offset(queue_pair), length);
    request.queue_pair = queue_pair;
    request.immediate = 0x01020300 + queue_pair;
    request.inline_data = inline_data;
    ASSERT_EQ(pair_->left.wire.post_send(request), 0);
    if (inline_data)
      scrub(pair_->left.memory,
            {.offset = offset(queue_pair), .length = length, .seed = seed_ - queue_pairs + 1 + queue_pair});
  }

  void check_sent() const {
    const std::vector<Completion> sent = pair_->left.take(queue_pairs);
    ASSERT_EQ(sent.size(), queue_pairs);
    for (const Completion& c : sent) {
      EXPECT_EQ(c.status, 0) << describe_status(c.status, {.vendor_error = c.vendor_error});
      EXPECT_EQ(c.kind, Completion::Kind::sent);
      EXPECT_EQ(c.id, 200 + c.queue_pair);
    }
  }

  void check_received(std::uint32_t length) const {
    const std::vector<Completion> received = pair_->right.take(queue_pairs);
    ASSERT_EQ(received.size(), queue_pairs);
    for (const Completion& c : received) {
      EXPECT_EQ(c.status, 0) << describe_status(c.status, {.vendor_error = c.vendor_error});
      EXPECT_EQ(c.kind, Completion::Kind::received);
      EXPECT_EQ(c.id, 100 + c.queue_pair);
      EXPECT_EQ(c.length, length);
      EXPECT_EQ(c.has_immediate, GetParam() == Op::write_imm);
      if (c.has_immediate) {
        EXPECT_EQ(c.immediate, 0x01020300 + c.queue_pair);
      }
    }
  }

  static void check_untouched(const std::vector<std::byte>& before, const std::byte* now,
                              std::uint32_t length) {
    std::uint64_t from = 0;
    for (std::uint32_t queue_pair = 0; queue_pair <= queue_pairs; ++queue_pair) {
      const std::uint64_t to = queue_pair < queue_pairs ? offset(queue_pair) : before.size();
      EXPECT_TRUE(std::equal(before.begin() + static_cast<std::ptrdiff_t>(from),
                             before.begin() + static_cast<std::ptrdiff_t>(to), now + from))
          << "changed between " << from << " and " << to;
      from = offset(queue_pair) + length;
    }
  }

  std::uint64_t seed_ = 0;
};

TEST_P(VerbsTransfer, places_every_byte_and_no_other_on_every_queue_pair) {
  for (const std::uint32_t length : {0U, 1U, 3U, 220U, 221U, 1023U, 4096U, 4097U, 65'537U, 8U << 20}) {
    SCOPED_TRACE(length);
    move(length, false);
  }
}

class VerbsInline : public VerbsTransfer {};

TEST_P(VerbsInline, data_may_be_overwritten_at_once) {
  ASSERT_GT(pair_->left.wire.inline_bytes(), 0);
  for (const std::uint32_t length : {0U, 1U, 63U, pair_->left.wire.inline_bytes()}) {
    SCOPED_TRACE(length);
    move(length, true);
  }
}

std::string op_name(const testing::TestParamInfo<Op>& info) {
  return std::string(to_string(info.param));
}
INSTANTIATE_TEST_SUITE_P(Ops, VerbsTransfer, testing::Values(Op::send, Op::write, Op::write_imm, Op::read),
                         op_name);
INSTANTIATE_TEST_SUITE_P(Ops, VerbsInline, testing::Values(Op::send, Op::write, Op::write_imm), op_name);

class Verbs : public NeedsRdma {};

TEST_F(Verbs, completes_unsignaled_requests_silently) {
  const Pair pair;
  for (std::uint64_t id = 1; id <= 5; ++id) {
    SendRequest request = pair.left.one_sided(Op::write, id, pair.right, 0, 8);
    request.signaled = id == 5;
    ASSERT_EQ(pair.left.wire.post_send(request), 0);
  }
  EXPECT_EQ(pair.left.take(1).at(0).id, 5);
  EXPECT_THAT(pair.left.take(1, 100ms), testing::IsEmpty());
}

// One end of a ping-pong; returns how often a sleep had to be ended by its limit: each is a lost event.
int bounce(const End& end, bool serves, int rounds) {
  constexpr auto sleep_limit = 10s;
  int lost = 0;
  int received = 0, sent = 0;
  const auto post = [&] {
    EXPECT_EQ(end.wire.post_receive(end.receive(0, 64, 8)), 0);
    EXPECT_EQ(end.wire.post_send(end.send(0, 0, 8)), 0);
  };
  if (serves) post();
  while ((received < rounds || sent < rounds) && lost == 0) {
    std::array<Completion, 4> batch;
    while (const std::size_t found = end.wire.poll(batch)) {
      for (const Completion& c : std::span(batch).first(found)) {
        EXPECT_EQ(c.status, 0);
        if (c.kind == Completion::Kind::sent) {
          ++sent;
        } else if (++received < rounds + (serves ? 0 : 1)) {
          post();
        }
      }
    }
    if (received >= rounds && sent >= rounds) break;
    const auto slept_from = steady_clock::now();
    end.wire.wait(-1, std::chrono::milliseconds(sleep_limit).count());
    if (steady_clock::now() - slept_from >= sleep_limit) ++lost;
  }
  return lost;
}

TEST_F(Verbs, loses_no_event_over_thousands_of_ping_pongs) {
  constexpr int rounds = 3000;
  const Pair pair(EndSettings{.limits = {.completion = CompletionMode::event}});
  // The end that answers needs its first receive before anything is sent.
  ASSERT_EQ(pair.right.wire.post_receive(pair.right.receive(0, 64, 8)), 0);
  auto answers = std::async(std::launch::async, [&] { return bounce(pair.right, false, rounds); });
  EXPECT_EQ(bounce(pair.left, true, rounds), 0);
  EXPECT_EQ(answers.get(), 0);
}

TEST_F(Verbs, is_woken_by_the_extra_descriptor) {
  const End end(EndSettings{.limits = {.completion = CompletionMode::event}});
  const FileDescriptor extra(eventfd(1, 0));
  const auto from = steady_clock::now();
  end.wire.wait(extra.get(), 20'000);
  EXPECT_LT(steady_clock::now() - from, 10s);
}

TEST_F(Verbs, says_that_a_full_queue_is_full_and_goes_on_when_it_has_room) {
  constexpr std::uint32_t depth = 16, far_more = 4096;
  const Pair pair(EndSettings{.limits = {.send_depth = depth, .receive_depth = depth}});
  // Without a receive at the other end every request stays in the queue.
  std::uint32_t posted = 0;
  int refused = 0;
  while (refused == 0 && posted < far_more)
    if (refused = pair.left.wire.post_send(pair.left.send(posted, 0, 8)); refused == 0) ++posted;
  EXPECT_EQ(refused, ENOMEM);
  EXPECT_GE(posted, depth);

  for (std::uint32_t received = 0; received < posted; ++received) {
    ASSERT_EQ(pair.right.wire.post_receive(pair.right.receive(received, 0, 8)), 0);
    ASSERT_EQ(pair.right.take(1).size(), 1);
  }
  EXPECT_THAT(pair.left.statuses(posted), AllOf(testing::SizeIs(posted), testing::Each(0)));
  EXPECT_EQ(pair.left.wire.post_send(pair.left.send(0, 0, 8)), 0);

  posted = 0;
  for (refused = 0; refused == 0 && posted < far_more; ++posted)
    refused = pair.left.wire.post_receive(pair.left.receive(posted, 0, 8));
  EXPECT_EQ(refused, ENOMEM);
  EXPECT_GT(posted, depth);
}

EndSettings cm_settings(VerbsWireRole role) {
  EndSettings settings{.limits = {.queue_pairs = 3}, .role = role};
  settings.verbs.connect = ConnectBy::rdma_cm;
  return settings;
}

TEST_F(Verbs, connects_by_rdma_cm_rejecting_whoever_lacks_the_token) {
  End passive(cm_settings(VerbsWireRole::passive));
  End active(cm_settings(VerbsWireRole::active));
  End intruder(cm_settings(VerbsWireRole::active));
  const nlohmann::json offer = passive.wire.offer();
  nlohmann::json guess = offer;
  guess["rdma_cm"]["token"] = offer["rdma_cm"]["token"].get<std::uint64_t>() ^ 1;

  auto accepts = std::async(std::launch::async, [&] { passive.wire.connect(active.wire.offer(), {}); });
  EXPECT_THAT(error_text<Error>([&] { intruder.wire.connect(guess, {}); }),
              HasSubstr("RDMA_CM_EVENT_REJECTED"));
  active.wire.connect(offer, {});
  accepts.get();

  for (std::uint32_t queue_pair = 0; queue_pair < 3; ++queue_pair) {
    fill_pattern(active.memory, {.length = 4097, .seed = queue_pair});
    SendRequest request = active.one_sided(Op::write, queue_pair, passive, 0, 4097);
    request.queue_pair = queue_pair;
    ASSERT_EQ(active.wire.post_send(request), 0);
    ASSERT_THAT(active.statuses(1), testing::ElementsAre(0));
    EXPECT_FALSE(find_mismatch(passive.memory, {.length = 4097, .seed = queue_pair}))
        << "queue pair " << queue_pair;
  }
}

TEST_F(Verbs, refuses_an_empty_slot_of_the_gid_table) {
  EndSettings settings;
  settings.verbs.gid_index = 99;
  EXPECT_THAT(error_text<Unavailable>([&] { const End end(settings); }),
              AllOf(HasSubstr("slot 99 of the GID table"), HasSubstr("is empty"), HasSubstr("--gid-index")));
}

TEST_F(Verbs, lists_the_devices_when_the_one_asked_for_is_missing) {
  EndSettings settings;
  settings.verbs.device = "nosuch";
  EXPECT_THAT(error_text<Unavailable>([&] { const End end(settings); }),
              AllOf(HasSubstr("no RDMA device nosuch"), HasSubstr(verbs::list_devices().front().name)));
}

TEST_F(Verbs, refuses_a_path_mtu_that_an_end_cannot_carry) {
  for (const std::uint32_t mtu : {512U, 8192U}) {
    EndSettings settings;
    settings.verbs.path_mtu = mtu;
    End own(settings);
    nlohmann::json peer = own.wire.offer();
    peer["active_mtu"] = 256;
    EXPECT_THAT(error_text<UsageError>([&] { own.wire.connect(peer, {}); }),
                HasSubstr("path MTU " + std::to_string(mtu) + " is"));
  }
}

TEST_F(Verbs, describes_the_connection_it_has_made) {
  const Pair pair;
  const VerbsProof proof = pair.left.wire.describe();
  EXPECT_EQ(proof.device, pair.left.wire.device().name());
  EXPECT_EQ(proof.path_mtu, pair.left.wire.device().info().active_mtu);
  EXPECT_EQ(proof.registrations, std::vector{Registration::host});
  EXPECT_EQ(proof.gid, pair.left.wire.offer()["gid"].get<std::string>());
}

}  // namespace
}  // namespace gdrbench::wire
