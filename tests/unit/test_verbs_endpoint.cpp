#include <gtest/gtest.h>

#include <vector>

#include "gdrbench/error.hpp"
#include "verbs/cm.hpp"
#include "verbs/endpoint.hpp"

namespace gdrbench::verbs {
namespace {

Endpoint example() {
  return {.gid = gid_from_hex("00000000000000000000ffff0a000005"),
          .lid = 65535,
          .link_layer = "Ethernet",
          .active_mtu = 4096,
          .rd_atomic = 16,
          .queue_pairs = {{.qpn = 17, .psn = 0xffffff}, {.qpn = 0xffffff, .psn = 0}},
          .cm = CmAddress{.ip = "10.0.0.5", .port = 40000, .token = 0xfedcba9876543210}};
}

nlohmann::json changed(const std::string& pointer, const nlohmann::json& value) {
  nlohmann::json j = to_json(example());
  j[nlohmann::json::json_pointer(pointer)] = value;
  return j;
}

TEST(Endpoint, SurvivesTheControlChannel) {
  EXPECT_EQ(endpoint(nlohmann::json::parse(to_json(example()).dump())), example());
  Endpoint without_cm = example();
  without_cm.cm.reset();
  EXPECT_EQ(endpoint(nlohmann::json::parse(to_json(without_cm).dump())), without_cm);
}

TEST(Endpoint, CarriesGidBytesAndNoIndex) {
  const nlohmann::json j = to_json(example());
  EXPECT_EQ(j.at("gid"), "00000000000000000000ffff0a000005");
  EXPECT_FALSE(j.contains("gid_index"));
}

TEST(Endpoint, RefusesWhatAPeerMustNotSend) {
  EXPECT_THROW(endpoint(nlohmann::json()), PeerLost);
  EXPECT_THROW(endpoint(nlohmann::json::object()), PeerLost);
  EXPECT_THROW(endpoint(changed("/gid", "fe80::1")), PeerLost);
  EXPECT_THROW(endpoint(changed("/gid", 5)), PeerLost);
  EXPECT_THROW(endpoint(changed("/lid", 65536)), PeerLost);
  EXPECT_THROW(endpoint(changed("/active_mtu", -1)), PeerLost);
  EXPECT_THROW(endpoint(changed("/rd_atomic", 1.5)), PeerLost);
  EXPECT_THROW(endpoint(changed("/queue_pairs/0/qpn", 1 << 24)), PeerLost);
  EXPECT_THROW(endpoint(changed("/queue_pairs/1/psn", 1 << 24)), PeerLost);
  EXPECT_THROW(endpoint(changed("/rdma_cm/port", 65536)), PeerLost);
  EXPECT_THROW(endpoint(changed("/rdma_cm", "10.0.0.5")), PeerLost);
  EXPECT_THROW(endpoint(changed("/queue_pairs", "none")), PeerLost);
}

TEST(Endpoint, NamesTheFieldThatAPeerSentWrong) {
  const auto fault_of = [](const nlohmann::json& offer) -> std::string {
    try {
      endpoint(offer);
      return "";
    } catch (const PeerLost& fault) {
      return fault.what();
    }
  };
  for (const auto& [pointer, field] : {std::pair{"/gid", "gid"},
                                       {"/lid", "lid"},
                                       {"/active_mtu", "active_mtu"},
                                       {"/link_layer", "link_layer"},
                                       {"/queue_pairs", "queue_pairs"},
                                       {"/queue_pairs/1", "queue_pairs[1]"},
                                       {"/queue_pairs/0/qpn", "queue_pairs[0].qpn"},
                                       {"/rdma_cm", "rdma_cm"},
                                       {"/rdma_cm/ip", "rdma_cm.ip"},
                                       {"/rdma_cm/token", "rdma_cm.token"}})
    for (const nlohmann::json& wrong : {nlohmann::json(-1), nlohmann::json(), nlohmann::json("")}) {
      const std::string fault = fault_of(changed(pointer, wrong));
      if (wrong.is_string() && (fault.empty() || std::string(field) == "rdma_cm.ip"))
        continue;  // a text was due
      EXPECT_NE(fault.find(std::string("offer.wire.") + field), std::string::npos)
          << pointer << ": " << fault;
      EXPECT_EQ(fault.find("json"), std::string::npos) << fault;
    }
  nlohmann::json without = to_json(example());
  without.erase("lid");
  EXPECT_NE(fault_of(without).find("offer.wire.lid: missing"), std::string::npos) << fault_of(without);
}

TEST(CmGreeting, TellsTheLane) {
  EXPECT_EQ(read_greeting(make_greeting(0xfedcba9876543210, 3), 0xfedcba9876543210, 4), 3U);
}

TEST(CmGreeting, IsReadFromPaddedPrivateData) {
  std::vector<std::uint8_t> padded(56);
  const CmGreeting greeting = make_greeting(7, 2);
  std::copy(greeting.begin(), greeting.end(), padded.begin());
  EXPECT_EQ(read_greeting(padded, 7, 4), 2U);
}

TEST(CmGreeting, IsRefusedWithAnotherTokenLaneOrLength) {
  const CmGreeting greeting = make_greeting(7, 2);
  EXPECT_EQ(read_greeting(greeting, 8, 4), std::nullopt);
  EXPECT_EQ(read_greeting(greeting, 7, 2), std::nullopt);
  EXPECT_EQ(read_greeting(std::span(greeting).first(11), 7, 4), std::nullopt);
  EXPECT_EQ(read_greeting({}, 7, 4), std::nullopt);
}

}  // namespace
}  // namespace gdrbench::verbs
