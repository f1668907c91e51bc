#include "verbs/endpoint.hpp"

#include <fmt/format.h>

#include <limits>

#include "base/fields.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::verbs {
namespace {

constexpr std::uint64_t max_24_bits = (1U << 24) - 1;
template <class Number>
constexpr std::uint64_t max_of = std::numeric_limits<Number>::max();
constexpr std::size_t max_text = 64;  // a GID, an address or a link layer

GidBytes parse_gid(const std::string& text) try { return gid_from_hex(text); } catch (const Error& error) {
  throw UsageError(fmt::format("offer.wire.gid: {}", error.what()));
}

std::vector<QueuePairEndpoint> parse_queue_pairs(const nlohmann::json& j) {
  if (!j.is_array()) throw UsageError("offer.wire.queue_pairs: not an array");
  std::vector<QueuePairEndpoint> queue_pairs;
  for (std::size_t i = 0; i < j.size(); ++i) {
    const Fields queue_pair(j[i], fmt::format("offer.wire.queue_pairs[{}]", i));
    queue_pairs.push_back({.qpn = queue_pair.number_as<std::uint32_t>("qpn", 0, max_24_bits),
                           .psn = queue_pair.number_as<std::uint32_t>("psn", 0, max_24_bits)});
  }
  return queue_pairs;
}

CmAddress parse_cm(const Fields& cm) {
  return {.ip = cm.text("ip", max_text),
          .port = cm.number_as<std::uint16_t>("port", 0, max_of<std::uint16_t>),
          .token = cm.number("token", 0, max_of<std::uint64_t>)};
}

Endpoint parse(const nlohmann::json& j) {
  const Fields f(j, "offer.wire");
  return {.gid = parse_gid(f.text("gid", max_text)),
          .lid = f.number_as<std::uint16_t>("lid", 0, max_of<std::uint16_t>),
          .link_layer = f.text("link_layer", max_text),
          .active_mtu = f.number_as<std::uint32_t>("active_mtu", 0, max_of<std::uint32_t>),
          .rd_atomic = f.number_as<std::uint8_t>("rd_atomic", 0, max_of<std::uint8_t>),
          .queue_pairs = parse_queue_pairs(f.at("queue_pairs")),
          .cm = j.contains("rdma_cm") ? std::optional(parse_cm(f.inner("rdma_cm"))) : std::nullopt};
}

}  // namespace

nlohmann::json to_json(const Endpoint& endpoint) {
  nlohmann::json queue_pairs = nlohmann::json::array();
  for (const QueuePairEndpoint& queue_pair : endpoint.queue_pairs)
    queue_pairs.push_back({{"qpn", queue_pair.qpn}, {"psn", queue_pair.psn}});
  nlohmann::json j{{"gid", to_hex(endpoint.gid)},       {"lid", endpoint.lid},
                   {"link_layer", endpoint.link_layer}, {"active_mtu", endpoint.active_mtu},
                   {"rd_atomic", endpoint.rd_atomic},   {"queue_pairs", std::move(queue_pairs)}};
  if (endpoint.cm)
    j["rdma_cm"] = {{"ip", endpoint.cm->ip}, {"port", endpoint.cm->port}, {"token", endpoint.cm->token}};
  return j;
}

Endpoint endpoint(const nlohmann::json& j) try { return parse(j); } catch (const Error& error) {
  throw PeerLost(fmt::format("malformed offer of the remote end: {}", error.what()));
}

}  // namespace gdrbench::verbs
