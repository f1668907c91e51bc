#include "session/data_connections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gdrbench/error.hpp"
#include "gdrbench/interrupt.hpp"
#include "session/channel.hpp"
#include "session/handshake.hpp"

namespace gdrbench::session {

using namespace std::chrono_literals;

wire::Socket open_data_connection(const wire::Address& server, const std::string& token, std::uint32_t index,
                                  Deadline deadline) {
  wire::Socket socket = wire::connect_tcp(server, deadline);
  const std::string remote = socket.remote_address();
  const std::string tried = fmt::format("opening a data connection to {}", remote);
  nlohmann::json hello = make_hello("data");
  hello["token"] = token;
  hello["connection"] = index;
  send_message(socket, hello, deadline, tried);
  expect_type(receive_message(socket, deadline, tried), "accepted", remote + ": ");
  return socket;
}

std::vector<wire::Socket> open_data_connections(const wire::Address& server, const std::string& token,
                                                std::uint32_t count, std::chrono::milliseconds timeout) {
  std::vector<wire::Socket> sockets;
  sockets.reserve(count);
  for (std::uint32_t index = 0; index < count; ++index)
    sockets.push_back(open_data_connection(server, token, index, after(timeout)));
  return sockets;
}

std::string DataConnections::expect(std::uint32_t count) {
  std::string token = random_hex(8);
  const std::lock_guard lock(mutex_);
  expected_[token] = std::vector<Pending>(count);
  return token;
}

bool DataConnections::claim(const std::string& token, std::uint64_t index) {
  const std::lock_guard lock(mutex_);
  const auto found = expected_.find(token);
  if (found == expected_.end() || index >= found->second.size()) return false;
  return !std::exchange(found->second[index].claimed, true);
}

void DataConnections::deliver(const std::string& token, std::uint64_t index, wire::Socket socket) {
  const std::lock_guard lock(mutex_);
  const auto found = expected_.find(token);
  if (found == expected_.end() || index >= found->second.size()) return;
  found->second[index].socket = std::move(socket);
  arrived_.notify_all();
}

std::vector<wire::Socket> DataConnections::collect(const std::string& token, Deadline deadline) {
  std::unique_lock lock(mutex_);
  std::vector<Pending>& pending = expected_.at(token);
  const auto is_here = [](const Pending& connection) { return static_cast<bool>(connection.socket); };
  while (!std::all_of(pending.begin(), pending.end(), is_here)) {
    if (std::chrono::steady_clock::now() >= deadline)
      throw PeerLost(fmt::format("waiting for the data connections of a case: {} of {} came in time",
                                 std::count_if(pending.begin(), pending.end(), is_here), pending.size()));
    arrived_.wait_until(lock, std::min(deadline, after(100ms)));
    throw_if_interrupted();
  }
  std::vector<wire::Socket> sockets;
  sockets.reserve(pending.size());
  for (Pending& connection : pending) sockets.push_back(std::move(connection.socket));
  expected_.erase(token);
  return sockets;
}

void DataConnections::forget(const std::string& token) {
  const std::lock_guard lock(mutex_);
  expected_.erase(token);
}

}  // namespace gdrbench::session
