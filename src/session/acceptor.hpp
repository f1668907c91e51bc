#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "session/lane_desk.hpp"
#include "session/log.hpp"
#include "wire/socket.hpp"

namespace gdrbench::session {

/// Takes the connections of a server in threads of its own, so that strangers (who have not yet shown what
/// they want) hold up neither each other nor the session that runs. One client at a time comes out of next().
class Acceptor {
 public:
  struct Client {
    wire::Socket socket;
    std::string address;
  };

  Acceptor(wire::Listener& listener, std::string key, LaneDesk& lanes, Log& log);
  ~Acceptor();

  /// Begins and ends taking connections.
  void start();
  void end();
  /// The next client that passed the handshake, or none after a termination signal or stop(). It counts as
  /// being served, and others are told so, until release().
  std::optional<Client> next();
  void release();
  /// Makes next() return none and breaks the connection of the client being served. From any thread.
  void stop();

 private:
  struct Stranger {
    wire::Socket socket;
    std::string address;
    bool done = false;
    std::thread thread;
  };
  struct Served {
    int fd;
    std::string address;
    std::string since;
  };

  void accept_connections();
  wire::Socket accept_one();
  void reap(bool all);
  void greet(Stranger& stranger);
  void admit(Stranger& stranger, const nlohmann::json& hello, Deadline deadline);
  void take_lane(Stranger& stranger, const nlohmann::json& hello, Deadline deadline);
  bool is_ending() const { return ending_ || stopped_; }

  wire::Listener& listener_;
  const std::string key_;
  LaneDesk& lanes_;
  Log& log_;
  std::atomic<bool> ending_{false};
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;  ///< of all below
  std::condition_variable changed_;
  std::optional<Served> served_;
  std::optional<Client> waiting_;  ///< admitted, not yet taken by next()
  std::list<Stranger> strangers_;
  std::set<int> accept_faults_;  ///< errno values said once; used by thread_ alone
  std::thread thread_;
};

}  // namespace gdrbench::session
