#include "verbs/endpoint.hpp"

#include <fmt/format.h>

#include <limits>

#include "base/fields.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::verbs {
namespace {

constexpr std::uint64_t largest_24_bits = (1U << 24) - 1;
template <class Number>
constexpr std::uint64_t largest = std::numeric_limits<Number>::max();
constexpr std::size_t longest_text = 64;  // a GID, an address or a link layer

GidBytes parse_gid(const std::string& text) try { return gid_from_hex(text); } catch (const Error& error) {
  throw UsageError(fmt::format("offer.wire.gid: {}", error.what()));
}

std::vector<LaneEndpoint> parse_lanes(const nlohmann::json& j) {
  if (!j.is_array()) throw UsageError("offer.wire.lanes: not an array");
  std::vector<LaneEndpoint> lanes;
  for (std::size_t i = 0; i < j.size(); ++i) {
    const Fields lane(j[i], fmt::format("offer.wire.lanes[{}]", i));
    lanes.push_back({.qpn = lane.number_as<std::uint32_t>("qpn", 0, largest_24_bits),
                     .psn = lane.number_as<std::uint32_t>("psn", 0, largest_24_bits)});
  }
  return lanes;
}

CmAddress parse_cm(const Fields& cm) {
  return {.ip = cm.text("ip", longest_text),
          .port = cm.number_as<std::uint16_t>("port", 0, largest<std::uint16_t>),
          .token = cm.number("token", 0, largest<std::uint64_t>)};
}

Endpoint parse(const nlohmann::json& j) {
  const Fields f(j, "offer.wire");
  return {.gid = parse_gid(f.text("gid", longest_text)),
          .lid = f.number_as<std::uint16_t>("lid", 0, largest<std::uint16_t>),
          .link_layer = f.text("link_layer", longest_text),
          .active_mtu = f.number_as<std::uint32_t>("active_mtu", 0, largest<std::uint32_t>),
          .rd_atomic = f.number_as<std::uint8_t>("rd_atomic", 0, largest<std::uint8_t>),
          .lanes = parse_lanes(f.at("lanes")),
          .cm = j.contains("rdma_cm") ? std::optional(parse_cm(f.inner("rdma_cm"))) : std::nullopt};
}

}  // namespace

nlohmann::json to_json(const Endpoint& endpoint) {
  nlohmann::json lanes = nlohmann::json::array();
  for (const LaneEndpoint& lane : endpoint.lanes) lanes.push_back({{"qpn", lane.qpn}, {"psn", lane.psn}});
  nlohmann::json j{{"gid", to_hex(endpoint.gid)},       {"lid", endpoint.lid},
                   {"link_layer", endpoint.link_layer}, {"active_mtu", endpoint.active_mtu},
                   {"rd_atomic", endpoint.rd_atomic},   {"lanes", std::move(lanes)}};
  if (endpoint.cm)
    j["rdma_cm"] = {{"ip", endpoint.cm->ip}, {"port", endpoint.cm->port}, {"token", endpoint.cm->token}};
  return j;
}

Endpoint endpoint(const nlohmann::json& j) try { return parse(j); } catch (const Error& error) {
  throw PeerLost(fmt::format("the peer's offer is not readable: {}", error.what()));
}

}  // namespace gdrbench::verbs
