#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "verbs/device.hpp"
#include "verbs/endpoint.hpp"
#include "verbs/ip_address.hpp"
#include "verbs/queue_pair.hpp"

namespace gdrbench::verbs {

/// What both ends settle outside of rdma_cm, which would choose these itself (and min_rnr_timer as 0, 655
/// ms).
struct LaneSettings {
  std::uint32_t path_mtu_bytes = 0;
  std::uint8_t max_dest_rd_atomic = 0;
  std::uint8_t max_rd_atomic = 0;
  std::uint8_t min_rnr_timer = 0;
  std::uint8_t timeout = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry = 0;
};

/// Connects queue pairs that exist already, in INIT, through librdmacm: one connection a lane. One end
/// listens and accepts, the other connects, at the same time. Every wait ends after 10 s or with Interrupted.
class CmConnector {
 public:
  /// Uses the IP address of `gid`, or of the port's IPoIB interface on InfiniBand. Throws Unavailable when
  /// rdma_cm or the address is missing.
  CmConnector(std::shared_ptr<const Device> device, const GidEntry& gid);

  /// Passive end: listens on a free port for that many requests, each with a fresh random token.
  CmAddress listen(std::uint32_t lanes);
  /// Returns when all lanes are connected. Requests without the token are rejected. Throws PeerLost after 10
  /// s without one, SystemError when a step fails.
  void accept(std::span<const QueuePair> lanes, const LaneSettings& settings);

  /// Active end. Throws like accept; Unavailable when the address is not reached through this device.
  void connect(const CmAddress& peer, std::span<const QueuePair> lanes, const LaneSettings& settings);

  /// Slot of the GID table that rdma_cm chose, −1 before a connection.
  int gid_index() const { return gid_index_; }

 private:
  struct DestroyChannel {
    static constexpr const char* name = "rdma_destroy_event_channel";
    static int destroy(rdma_event_channel* channel) {
      rdma_destroy_event_channel(channel);
      return 0;
    }
  };
  struct DestroyId {
    static constexpr const char* name = "rdma_destroy_id";
    static int destroy(rdma_cm_id* id) { return rdma_destroy_id(id); }
  };
  struct AcknowledgeEvent {
    static constexpr const char* name = "rdma_ack_cm_event";
    static int destroy(rdma_cm_event* event) { return rdma_ack_cm_event(event); }
  };
  using Id = Handle<rdma_cm_id, DestroyId>;
  using Event = Handle<rdma_cm_event, AcknowledgeEvent>;

  Id create_id() const;
  Id own_id(rdma_cm_id* id) const;
  void check_device(const rdma_cm_id& id) const;
  Event next_event(const std::string& waiting_for) const;
  void expect(rdma_cm_event_type wanted, const std::string& waiting_for) const;
  void make_ready(rdma_cm_id& id, const QueuePair& pair, const LaneSettings& settings);
  void answer(Id id, std::optional<std::uint32_t> lane, std::span<const QueuePair> lanes,
              const LaneSettings& settings);
  void connect_lane(const CmAddress& peer, std::uint32_t lane, const QueuePair& pair,
                    const LaneSettings& settings);

  std::shared_ptr<const Device> device_;
  std::shared_ptr<rdma_event_channel> channel_;
  IpAddress own_;
  std::uint64_t token_ = 0;
  int gid_index_ = -1;
  Id listener_;
  std::vector<Id> ids_;  ///< kept: destroying one disconnects its lane
};

}  // namespace gdrbench::verbs
