#include "session/lane_desk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gdrbench/error.hpp"
#include "gdrbench/interrupt.hpp"
#include "session/key.hpp"

namespace gdrbench::session {

using namespace std::chrono_literals;

std::string LaneDesk::expect(std::uint32_t lanes) {
  std::string token = random_hex(8);
  const std::lock_guard lock(mutex_);
  expected_[token] = std::vector<Lane>(lanes);
  return token;
}

bool LaneDesk::claim(const std::string& token, std::uint64_t lane) {
  const std::lock_guard lock(mutex_);
  const auto found = expected_.find(token);
  if (found == expected_.end() || lane >= found->second.size()) return false;
  return !std::exchange(found->second[lane].claimed, true);
}

void LaneDesk::deliver(const std::string& token, std::uint64_t lane, wire::Socket socket) {
  const std::lock_guard lock(mutex_);
  const auto found = expected_.find(token);
  if (found == expected_.end() || lane >= found->second.size()) return;
  found->second[lane].socket = std::move(socket);
  arrived_.notify_all();
}

std::vector<wire::Socket> LaneDesk::collect(const std::string& token, Deadline deadline) {
  std::unique_lock lock(mutex_);
  std::vector<Lane>& lanes = expected_.at(token);
  const auto is_here = [](const Lane& lane) { return static_cast<bool>(lane.socket); };
  while (!std::all_of(lanes.begin(), lanes.end(), is_here)) {
    if (std::chrono::steady_clock::now() >= deadline)
      throw PeerLost(fmt::format("waiting for the data connections of a case: {} of {} came in time",
                                 std::count_if(lanes.begin(), lanes.end(), is_here), lanes.size()));
    arrived_.wait_until(lock, std::min(deadline, after(100ms)));
    throw_if_interrupted();
  }
  std::vector<wire::Socket> sockets;
  sockets.reserve(lanes.size());
  for (Lane& lane : lanes) sockets.push_back(std::move(lane.socket));
  expected_.erase(token);
  return sockets;
}

void LaneDesk::forget(const std::string& token) {
  const std::lock_guard lock(mutex_);
  expected_.erase(token);
}

}  // namespace gdrbench::session
