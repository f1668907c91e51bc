#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "verbs/gid.hpp"

namespace gdrbench::verbs {

/// Where a passive end listens for rdma_cm connections.
struct CmAddress {
  std::string ip;
  std::uint16_t port = 0;
  std::uint64_t token = 0;  ///< what a connection request must carry to be accepted
  bool operator==(const CmAddress&) const = default;
};

struct QueuePairEndpoint {
  std::uint32_t qpn = 0;
  std::uint32_t psn = 0;  ///< of the first packet that this end sends, 24 bits
  bool operator==(const QueuePairEndpoint&) const = default;
};

/// What one end tells the other so that their queue pairs can be connected.
struct Endpoint {
  GidBytes gid{};
  std::uint16_t lid = 0;         ///< InfiniBand
  std::string link_layer;        ///< "Ethernet", "InfiniBand"
  std::uint32_t active_mtu = 0;  ///< bytes
  std::uint8_t rd_atomic = 0;    ///< reads of the other end that this end serves at once, a queue pair
  std::vector<QueuePairEndpoint> queue_pairs{};
  std::optional<CmAddress> cm{};
  bool operator==(const Endpoint&) const = default;
};

nlohmann::json to_json(const Endpoint& endpoint);
/// Throws PeerLost when a field is missing or out of range.
Endpoint endpoint(const nlohmann::json& j);

}  // namespace gdrbench::verbs
