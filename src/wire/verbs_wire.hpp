#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gdrbench/path_proof.hpp"
#include "verbs/cm.hpp"
#include "verbs/completion_queue.hpp"
#include "verbs/device.hpp"
#include "verbs/endpoint.hpp"
#include "verbs/memory_region.hpp"
#include "verbs/queue_pair.hpp"
#include "wire/queue_pair.hpp"

namespace gdrbench::wire {

/// Which end starts an rdma_cm connection; without rdma_cm the ends are alike. Both connect() at the same
/// time.
enum class VerbsWireRole { active, passive };

/// Why the device of `options` cannot do the operation, "" if it can. Throws Unavailable when there is no
/// such device.
std::string unsupported_op(const VerbsOptions& options, Op op);
std::string unsupported_op(const verbs::Device& device, Op op);

/// Reliable-connected queue pairs of one device, one a queue pair, sharing one completion queue. Registered
/// memory must outlive the wire.
class VerbsWire {
 public:
  static constexpr bool one_sided_needs_target_cpu = false;

  /// Opens the device and creates the queue pairs, in INIT: receives may be posted at once. Throws
  /// Unavailable with a reason that an administrator can act on, else SystemError.
  VerbsWire(const VerbsOptions& options, const WireLimits& limits, VerbsWireRole role);

  /// Throws Unavailable for a view said to be on the GPU that is no such memory, or cannot be registered in
  /// the way that the options ask for, else SystemError.
  Region register_memory(const MemoryView& view);
  nlohmann::json offer() const;
  /// Throws PeerLost for an offer that is not readable, Error for one that does not fit, SystemError when a
  /// queue pair cannot be moved to RTS, and with rdma_cm also when a step takes longer than 10 s.
  void connect(const nlohmann::json& remote_offer, const std::vector<Socket>& sockets);
  /// Ids of requests are below 2^48.
  int post_send(const SendRequest& request) const;
  int post_receive(const ReceiveRequest& request) const;
  std::size_t poll(std::span<Completion> out) const;
  /// In event mode sleeps on the completion channel and `extra_fd`; with polling just yields the processor.
  void wait(int extra_fd, int timeout_ms) const;
  std::uint64_t max_message() const { return device_->port().max_msg_sz; }
  std::uint32_t inline_bytes() const { return inline_bytes_; }
  FabricKind fabric() const { return device_->info().fabric; }
  VerbsProof describe() const;

  const verbs::Device& device() const { return *device_; }
  /// Bytes sent by the port since it came up, headers included; absent where the device has no such counter.
  std::optional<std::uint64_t> port_bytes() const;

 private:
  void connect_queue_pairs(const verbs::Endpoint& remote, const verbs::QueuePairSettings& settings) const;

  VerbsOptions options_;
  CompletionMode completion_;
  VerbsWireRole role_;
  std::shared_ptr<const verbs::Device> device_;
  verbs::GidEntry gid_;
  std::shared_ptr<const verbs::ProtectionDomain> domain_;
  std::shared_ptr<verbs::CompletionQueue> completions_;
  std::vector<verbs::MemoryRegion> regions_;
  std::vector<verbs::QueuePair> queue_pairs_;
  std::optional<verbs::CmConnector> cm_;
  verbs::Endpoint own_;
  std::uint32_t path_mtu_ = 0;  ///< bytes; 0 before connect
  std::uint32_t inline_bytes_ = 0;
};

static_assert(Wire<VerbsWire>);

}  // namespace gdrbench::wire
