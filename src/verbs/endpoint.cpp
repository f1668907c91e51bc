#include "verbs/endpoint.hpp"

#include <fmt/format.h>

#include <limits>

#include "gdrbench/error.hpp"

namespace gdrbench::verbs {
namespace {

constexpr std::uint64_t largest_24_bits = (1U << 24) - 1;

template <class Number>
Number number(const nlohmann::json& j, const char* key,
              std::uint64_t largest = std::numeric_limits<Number>::max()) {
  const nlohmann::json& field = j.at(key);
  const bool whole =
      field.is_number_unsigned() || (field.is_number_integer() && field.get<std::int64_t>() >= 0);
  if (!whole || field.get<std::uint64_t>() > largest)
    throw Error(fmt::format("{} is {}, not a whole number up to {}", key, field.dump(), largest));
  return static_cast<Number>(field.get<std::uint64_t>());
}

std::vector<LaneEndpoint> parse_lanes(const nlohmann::json& j) {
  std::vector<LaneEndpoint> lanes;
  for (const nlohmann::json& lane : j)
    lanes.push_back({.qpn = number<std::uint32_t>(lane, "qpn", largest_24_bits),
                     .psn = number<std::uint32_t>(lane, "psn", largest_24_bits)});
  return lanes;
}

std::optional<CmAddress> parse_cm(const nlohmann::json& j) {
  if (!j.contains("rdma_cm")) return std::nullopt;
  const nlohmann::json& cm = j.at("rdma_cm");
  return CmAddress{.ip = cm.at("ip").get<std::string>(),
                   .port = number<std::uint16_t>(cm, "port"),
                   .token = number<std::uint64_t>(cm, "token")};
}

Endpoint parse(const nlohmann::json& j) {
  return {.gid = gid_from_hex(j.at("gid").get<std::string>()),
          .lid = number<std::uint16_t>(j, "lid"),
          .link_layer = j.at("link_layer").get<std::string>(),
          .active_mtu = number<std::uint32_t>(j, "active_mtu"),
          .rd_atomic = number<std::uint8_t>(j, "rd_atomic"),
          .lanes = parse_lanes(j.at("lanes")),
          .cm = parse_cm(j)};
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

Endpoint endpoint(const nlohmann::json& j) try {
  return parse(j);
} catch (const nlohmann::json::exception& error) {
  throw PeerLost(fmt::format("the peer's offer of queue pairs is not readable: {}", error.what()));
} catch (const Error& error) {
  throw PeerLost(fmt::format("the peer's offer of queue pairs is not readable: {}", error.what()));
}

}  // namespace gdrbench::verbs
