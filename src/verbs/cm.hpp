#pragma once

#include <rdma/rdma_cma.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "verbs/device.hpp"
#include "verbs/endpoint.hpp"
#include "verbs/queue_pair.hpp"

namespace gdrbench::verbs {

/// An IP address of an RDMA port, as rdma_cm needs it.
struct IpAddress {
  std::string ip;           ///< "10.0.0.5", "fe80::1"
  std::uint32_t scope = 0;  ///< interface index of a link-local address
};

/// The GID itself on Ethernet; on InfiniBand the address of the device's IPoIB interface. Throws Unavailable
/// when that has none.
IpAddress ip_address(const Device& device, const GidEntry& gid);

/// Throws Error when `ip` is no numeric address.
sockaddr_storage socket_address(const IpAddress& address, std::uint16_t port);

/// Private data of an rdma_cm connection request: token and queue pair, network byte order. It tells a
/// request of this case from one of somebody else who tries the port.
using CmGreeting = std::array<std::uint8_t, 12>;

CmGreeting make_greeting(std::uint64_t token, std::uint32_t queue_pair);

/// The queue pair, or nothing when the data is short, the token another one, or the queue pair not below
/// `queue_pairs`.
std::optional<std::uint32_t> read_greeting(std::span<const std::uint8_t> data, std::uint64_t token,
                                           std::uint32_t queue_pairs);

/// What both ends settle outside of rdma_cm, which would choose these itself (and min_rnr_timer as 0, 655
/// ms).
struct QueuePairSettings {
  std::uint32_t path_mtu_bytes = 0;
  std::uint8_t max_dest_rd_atomic = 0;
  std::uint8_t max_rd_atomic = 0;
  std::uint8_t min_rnr_timer = 0;
  std::uint8_t timeout = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry = 0;
};

/// Connects queue pairs that exist already, in INIT, through librdmacm: one connection a queue pair. One end
/// listens and accepts, the other connects, at the same time. Every wait ends after 10 s or with Interrupted.
class CmConnector {
 public:
  /// Uses the IP address of `gid`, or of the port's IPoIB interface on InfiniBand. Throws Unavailable when
  /// rdma_cm or the address is missing.
  CmConnector(std::shared_ptr<const Device> device, const GidEntry& gid);

  /// Passive end: listens on a free port for that many requests, each with a fresh random token.
  CmAddress listen(std::uint32_t queue_pairs);
  /// Returns when all queue pairs are connected. Requests without the token are rejected. Throws PeerLost
  /// after 10 s without one, SystemError when a step fails.
  void accept(std::span<const QueuePair> queue_pairs, const QueuePairSettings& settings);

  /// Active end. Throws like accept; Unavailable when the address is not reached through this device.
  void connect(const CmAddress& remote, std::span<const QueuePair> queue_pairs,
               const QueuePairSettings& settings);

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
  void make_ready(rdma_cm_id& id, const QueuePair& pair, const QueuePairSettings& settings);
  void answer(Id id, std::optional<std::uint32_t> queue_pair, std::span<const QueuePair> queue_pairs,
              const QueuePairSettings& settings);
  void connect_queue_pair(const CmAddress& remote, std::uint32_t queue_pair, const QueuePair& pair,
                          const QueuePairSettings& settings);

  std::shared_ptr<const Device> device_;
  std::shared_ptr<rdma_event_channel> channel_;
  IpAddress own_;
  std::uint64_t token_ = 0;
  int gid_index_ = -1;
  Id listener_;
  std::vector<Id> ids_;  ///< kept: destroying one disconnects its queue pair
};

}  // namespace gdrbench::verbs
