#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "gdrbench/path_proof.hpp"
#include "wire/queue_pair.hpp"
#include "wire/tcp_connection.hpp"
#include "wire/tcp_worker.hpp"

namespace gdrbench::wire {

/// TCP sockets as queue pairs, one a connection. The operations that sockets lack are carried as frames and
/// done by the process at the other end: one_sided_needs_target_cpu. A send, write or write_imm completes
/// when the kernel has taken all of it. Sockets are moved in poll(), or with WireLimits::threads by threads
/// that share the connections among them.
class TcpWire {
 public:
  static constexpr bool one_sided_needs_target_cpu = true;

  explicit TcpWire(const WireLimits& limits);
  TcpWire(const TcpWire&) = delete;  // connections point to the table of regions
  TcpWire& operator=(const TcpWire&) = delete;

  /// Before connect(), from where on the remote end may name it.
  Region register_memory(const MemoryView& view);
  nlohmann::json offer() const { return nlohmann::json::object(); }
  void connect(const nlohmann::json& remote_offer, std::vector<Socket> sockets);
  int post_send(const SendRequest& request);
  int post_receive(const ReceiveRequest& request);
  std::size_t poll(std::span<Completion> out);
  void wait(int extra_fd, int timeout_ms);
  std::uint64_t max_message() const;
  std::uint32_t inline_bytes() const { return 0; }
  FabricKind fabric() const { return FabricKind::none; }
  TcpProof describe() const;
  /// Either way, over all connections: rises also while no message is complete. What has moved is over for
  /// the caller: it may use the memory again of which the remote end has said, by another way, that it has it
  /// all.
  std::uint64_t bytes_moved() const;

 private:
  void start_workers();
  TcpWorker& worker_of(std::uint32_t connection) { return *workers_[connection % workers_.size()]; }
  void wait_for_workers(int extra_fd, int timeout_ms);

  WireLimits limits_;
  std::vector<Region> regions_;
  std::deque<TcpConnection> connections_;
  std::vector<ReceiveRequest> early_receives_;  ///< posted before connect()
  Ring<Completion> completed_;
  std::optional<SocketWatch> watch_;  ///< made by the first wait(); not with workers
  std::optional<WakeUp> wake_up_;     ///< with workers
  std::vector<std::unique_ptr<TcpWorker>> workers_;
};

static_assert(Wire<TcpWire>);

}  // namespace gdrbench::wire
