#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "gdrbench/error.hpp"
#include "measure/runner.hpp"

namespace gdrbench::measure {
namespace {

std::string fault_of_offer(const Case& c, const nlohmann::json& offer) {
  Payload payload;
  const auto runner = make_runner(c, Role::responder, payload);
  try {
    std::vector<RankLink> ranks(2);
    ranks[0].offer = offer;
    runner->connect(std::move(ranks));
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
       {Offer{staged, nullptr, "offer: not an object"}, Offer{staged, 5, "offer: not an object"},
        Offer{staged, json::object(), "offer.wire: missing"},
        Offer{staged, {{"wire", json::object()}}, "offer.path: missing"},
        Offer{direct, {{"wire", nullptr}, {"path", json::object()}}, "offer.wire: not an object"},
        Offer{direct, {{"wire", json::object()}, {"path", nullptr}}, "offer.path: not an object"},
        Offer{staged, {{"wire", json::object()}, {"path", json::object()}}, "offer.path.staging: missing"},
        Offer{staged,
              {{"wire", json::object()}, {"path", {{"staging", 5}}}},
              "offer.path.staging: not an object"},
        Offer{staged,
              {{"wire", json::object()}, {"path", {{"staging", with("rkey", -1)}}}},
              "offer.path.staging.rkey"},
        Offer{staged,
              {{"wire", json::object()}, {"path", {{"staging", with("rkey", std::uint64_t{1} << 32)}}}},
              "offer.path.staging.rkey"},
        Offer{staged,
              {{"wire", json::object()}, {"path", {{"staging", with("length", 1000)}}}},
              "offer.path.staging.length"},
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
  EXPECT_NE(refusal(Op::read, CompletionMode::poll).find("use --op send, write, write_imm"),
            std::string::npos);
  EXPECT_NE(refusal(Op::send, CompletionMode::event).find("no event to wait for"), std::string::npos);
  EXPECT_EQ(refusal(Op::send, CompletionMode::poll), "accepted");
  EXPECT_THROW(make_runner({.suite = Suite::visible, .path = Path::tcp_wire, .queue_pairs = 2},
                           Role::initiator, payload),
               UsageError);
}

TEST(Runner, says_what_the_p2p_path_is_not_for) {
  const auto reason = [](const Case& c) -> std::string {
    Payload payload;
    try {
      make_runner(c, Role::initiator, payload);
    } catch (const Unavailable& unavailable) {
      return unavailable.what();
    }
    return "nothing was thrown";
  };
  Case c{.suite = Suite::bandwidth, .path = Path::p2p, .op = Op::write, .memory = MemoryKind::cuda};
  for (const Op op : {Op::send, Op::write_imm}) {
    c.op = op;
    EXPECT_EQ(reason(c), "the p2p path has no " + std::string(to_string(op)) + "; use --op write, read");
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
  EXPECT_NE(reason(c).find("another --op: read"), std::string::npos) << reason(c);
}

}  // namespace
}  // namespace gdrbench::measure
