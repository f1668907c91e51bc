#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "wire/socket.hpp"

namespace gdrbench::session {

/// Where data connections, accepted by one thread, wait for the session that opened their case. A token of 64
/// random bits, told only to the client of that session, names the case.
class LaneDesk {
 public:
  /// Expects `lanes` connections; returns their token.
  std::string expect(std::uint32_t lanes);
  /// Whether this lane of this token is still wanted; if so, nobody else gets it.
  bool claim(const std::string& token, std::uint64_t lane);
  /// Hands over the connection of a claimed lane.
  void deliver(const std::string& token, std::uint64_t lane, wire::Socket socket);
  /// All lanes of the token, in order. Throws PeerLost when one has not come before the deadline,
  /// Interrupted.
  std::vector<wire::Socket> collect(const std::string& token, Deadline deadline);
  void forget(const std::string& token);

 private:
  struct Lane {
    bool claimed = false;
    wire::Socket socket;
  };

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<std::string, std::vector<Lane>> expected_;
};

}  // namespace gdrbench::session
