#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>

#include "gdrbench/case.hpp"
#include "verbs/completion_queue.hpp"
#include "verbs/memory_region.hpp"

namespace gdrbench::verbs {

struct QueuePairAttributes {
  std::uint32_t send_depth = 0;     ///< outstanding send requests
  std::uint32_t receive_depth = 0;  ///< outstanding receive requests
  std::uint32_t inline_bytes = 0;   ///< wanted; a device that refuses gets 0
  Transport transport = Transport::rc;
};

struct DestroyQueuePair {
  static constexpr const char* name = "ibv_destroy_qp";
  static int destroy(ibv_qp* pair) { return ibv_destroy_qp(pair); }
};

/// A connected queue pair whose two queues share one completion queue; one scatter/gather entry a
/// request.
class QueuePair {
 public:
  std::uint32_t number() const { return pair_->qp_num; }
  /// Largest inline request granted, bytes.
  std::uint32_t inline_bytes() const { return inline_bytes_; }
  ibv_qp* get() const { return pair_.get(); }

 private:
  friend class ProtectionDomain;
  QueuePair(std::shared_ptr<const ProtectionDomain> domain,
            std::shared_ptr<const CompletionQueue> completions, const QueuePairAttributes& attributes);

  Handle<ibv_qp, DestroyQueuePair> pair_;
  std::uint32_t inline_bytes_ = 0;
};

struct InitAttributes {
  std::uint8_t port = 1;
};

/// Where the other end is and how its packets are taken (IBTA 10.3.1, table 97).
struct ReadyToReceiveAttributes {
  ibv_ah_attr address{};
  std::uint32_t destination_qpn = 0;
  std::uint32_t receive_psn = 0;
  std::uint32_t path_mtu_bytes = 0;
  std::uint8_t max_dest_rd_atomic = 0;  ///< reads of the other end served at once
  std::uint8_t min_rnr_timer = 0;       ///< code of IBTA table 45
};

struct ReadyToSendAttributes {
  std::uint32_t send_psn = 0;
  std::uint8_t max_rd_atomic = 0;  ///< own reads in flight
  std::uint8_t timeout = 0;        ///< local ACK timeout, 4.096 µs × 2^timeout
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry = 0;
};

/// What leads from one port to another.
struct AddressAttributes {
  std::uint8_t port = 1;
  bool global_route = true;  ///< RoCE: always. InfiniBand: only where the port demands a GRH
  int source_gid_index = 0;
  std::array<std::uint8_t, 16> destination_gid{};
  std::uint16_t destination_lid = 0;  ///< InfiniBand
  std::uint8_t service_level = 0;
  std::uint8_t traffic_class = 0;
};
ibv_ah_attr make_address(const AddressAttributes& attributes);

/// RESET → INIT → RTR → RTS; an unreliable connection takes no settings of reads, acknowledgement and
/// retries. Receives may be posted from INIT on. Throw SystemError with the usual cause.
void to_init(const QueuePair& pair, const InitAttributes& attributes);
void to_ready_to_receive(const QueuePair& pair, const ReadyToReceiveAttributes& attributes);
void to_ready_to_send(const QueuePair& pair, const ReadyToSendAttributes& attributes);

}  // namespace gdrbench::verbs
