#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "wire/socket.hpp"

/// The TCP connections that carry the payload of a case between two ranks. One rank waits for them at its
/// server's port, the other opens them with a token of 64 random bits, which only the client that opened the
/// case has been told, and whom it tells.
namespace gdrbench::session {

/// Opens data connection number `index` of those that the server expects under the token.
wire::Socket open_data_connection(const wire::Address& server, const std::string& token, std::uint32_t index,
                                  Deadline deadline);
/// All of them, each within the timeout.
std::vector<wire::Socket> open_data_connections(const wire::Address& server, const std::string& token,
                                                std::uint32_t count, std::chrono::milliseconds timeout);

/// Where data connections, accepted by one thread, wait for the session that opened their case.
class DataConnections {
 public:
  /// Expects `count` connections; returns their token.
  std::string expect(std::uint32_t count);
  /// Whether this connection of this token is still awaited; if so, nobody else gets it.
  bool claim(const std::string& token, std::uint64_t index);
  /// Hands over a claimed connection.
  void deliver(const std::string& token, std::uint64_t index, wire::Socket socket);
  /// All connections of the token, in order. Throws PeerLost when one has not come before the deadline,
  /// Interrupted.
  std::vector<wire::Socket> collect(const std::string& token, Deadline deadline);
  void forget(const std::string& token);

 private:
  struct Pending {
    bool claimed = false;
    wire::Socket socket;
  };

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<std::string, std::vector<Pending>> expected_;
};

}  // namespace gdrbench::session
