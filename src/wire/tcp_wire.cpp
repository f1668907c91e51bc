#include "wire/tcp_wire.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "gdrbench/error.hpp"

namespace gdrbench::wire {

TcpWire::TcpWire(const WireLimits& limits) : limits_(limits) {}

Region TcpWire::register_memory(const MemoryView& view) {
  if (view.on_gpu) throw Unavailable("sockets cannot send from GPU memory; use a staged path");
  const auto key = static_cast<std::uint32_t>(regions_.size());
  regions_.push_back({.address = view.address,
                      .length = view.length,
                      .lkey = key,
                      .rkey = key,
                      .registration = Registration::none});
  return regions_.back();
}

void TcpWire::connect(const nlohmann::json&, std::vector<Socket> sockets) {
  if (sockets.size() != limits_.queue_pairs)
    throw Error(
        fmt::format("the TCP wire needs {} connections and got {}", limits_.queue_pairs, sockets.size()));
  for (Socket& socket : sockets)
    connections_.emplace_back(std::move(socket), static_cast<std::uint32_t>(connections_.size()), regions_);
  for (const ReceiveRequest& request : early_receives_) {
    TcpConnection& connection = connections_[request.queue_pair];
    if (!connection.reserve_receive(limits_.receive_depth))
      throw Error("more receives than the TCP wire holds");
    connection.post_receive(request);
  }
  early_receives_.clear();
  start_workers();
}

void TcpWire::start_workers() {
  const std::size_t count = std::min<std::size_t>(limits_.threads, connections_.size());
  if (count == 0) return;
  std::vector<std::vector<TcpConnection*>> shares(count);
  for (std::size_t connection = 0; connection < connections_.size(); ++connection)
    shares[connection % count].push_back(&connections_[connection]);
  const auto refused = [&](int error) {
    return SystemError(
        error, fmt::format("starting thread {} of {} that move sockets", workers_.size() + 1, count),
        "each takes a process of `ulimit -u` and two descriptors of `ulimit -n`; raise those or "
        "lower --tcp-threads");
  };
  try {
    wake_up_.emplace();
    for (std::vector<TcpConnection*>& share : shares)
      workers_.push_back(std::make_unique<TcpWorker>(std::move(share), limits_.completion, *wake_up_));
  } catch (const SystemError& error) {
    throw refused(error.code());
  } catch (const std::system_error& error) {
    throw refused(error.code().value());
  }
}

int TcpWire::post_send(const SendRequest& request) {
  TcpConnection& connection = connections_[request.queue_pair];
  if (!connection.reserve_send(limits_.send_depth)) return ENOMEM;
  if (workers_.empty())
    connection.post_send(request, completed_);
  else
    worker_of(request.queue_pair).post(connection, request);
  return 0;
}

int TcpWire::post_receive(const ReceiveRequest& request) {
  if (connections_.empty()) {
    early_receives_.push_back(request);
    return 0;
  }
  TcpConnection& connection = connections_[request.queue_pair];
  if (!connection.reserve_receive(limits_.receive_depth)) return ENOMEM;
  if (workers_.empty())
    connection.post_receive(request);
  else
    worker_of(request.queue_pair).post(connection, request);
  return 0;
}

std::size_t TcpWire::poll(std::span<Completion> out) {
  if (completed_.empty()) {
    for (const auto& worker : workers_) worker->collect(completed_);
    if (workers_.empty())
      for (TcpConnection& connection : connections_) connection.progress(completed_);
  }
  std::size_t count = 0;
  while (count < out.size() && !completed_.empty()) out[count++] = completed_.take_front();
  return count;
}

void TcpWire::wait(int extra_fd, int timeout_ms) {
  if (!completed_.empty()) return;
  if (!workers_.empty()) return wait_for_workers(extra_fd, timeout_ms);
  if (!watch_) {
    std::vector<const TcpConnection*> connections;
    for (const TcpConnection& connection : connections_) connections.push_back(&connection);
    watch_.emplace(std::move(connections));
  }
  watch_->wait(extra_fd, timeout_ms);
}

void TcpWire::wait_for_workers(int extra_fd, int timeout_ms) {
  wake_up_->will_sleep();
  const bool anything = std::any_of(workers_.begin(), workers_.end(),
                                    [](const auto& worker) { return worker->has_something(); });
  if (!anything) {
    pollfd fds[] = {{wake_up_->fd(), POLLIN, 0}, {extra_fd, POLLIN, 0}};
    if (::poll(fds, 2, timeout_ms) < 0 && errno != EINTR)
      throw SystemError(errno, "waiting for the threads of the TCP wire by poll");
  }
  wake_up_->is_awake();
}

// One frame's length is a 32-bit number; a page less keeps sums of it within that.
std::uint64_t TcpWire::max_message() const {
  return (std::uint64_t{1} << 31) - 4096;
}

std::uint64_t TcpWire::bytes_moved() const {
  std::uint64_t sum = 0;
  for (const auto& worker : workers_) sum += worker->bytes_moved();
  if (workers_.empty())
    for (const TcpConnection& connection : connections_) sum += connection.bytes_moved();
  return sum;
}

TcpProof TcpWire::describe() const {
  TcpProof proof;
  proof.sockets = static_cast<std::uint32_t>(connections_.size());
  proof.threads = static_cast<std::uint32_t>(workers_.size());
  if (connections_.empty()) return proof;
  const Socket& socket = connections_.front().socket();
  proof.local = socket.local_address();
  proof.remote = socket.remote_address();
  int mss = 0;
  socklen_t length = sizeof mss;
  if (getsockopt(socket.fd(), IPPROTO_TCP, TCP_MAXSEG, &mss, &length) == 0) proof.mss_bytes = mss;
  char congestion[16] = {};
  length = sizeof congestion - 1;
  if (getsockopt(socket.fd(), IPPROTO_TCP, TCP_CONGESTION, congestion, &length) == 0)
    proof.congestion_control = congestion;
  return proof;
}

}  // namespace gdrbench::wire
