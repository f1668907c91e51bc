#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "gdrbench/session.hpp"
#include "session/acceptor.hpp"
#include "session/data_connections.hpp"
#include "session/harness.hpp"

namespace gdrbench::session {

/// What a Server is, with the measuring side passed in.
class ServerCore {
 public:
  ServerCore(ServeOptions options, Harness harness);
  std::uint16_t port() const { return listener_.port(); }
  /// As Server::run().
  void run(int visits);
  void stop() { acceptor_.stop(); }

 private:
  void serve(Acceptor::Client& client);

  const Harness harness_;
  const std::uint64_t max_payload_bytes_;
  const std::uint32_t max_queue_pairs_;
  const std::chrono::milliseconds idle_limit_;
  const std::function<nlohmann::json(const nlohmann::json&)> examine_;
  Log log_;
  DataConnections data_connections_;
  wire::Listener listener_;
  Acceptor acceptor_;
};

}  // namespace gdrbench::session
