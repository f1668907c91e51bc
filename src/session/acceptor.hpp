#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <thread>

#include "session/data_connections.hpp"
#include "session/visit.hpp"
#include "wire/socket.hpp"

namespace gdrbench::session {

/// Lets several threads use the log function of ServeOptions, one at a time. Lines may repeat what clients
/// sent: nothing in them can steer a terminal or begin another line.
class Log {
 public:
  explicit Log(std::function<void(const std::string&)> write) : write_(std::move(write)) {}
  void operator()(const std::string& line);

 private:
  std::mutex mutex_;
  std::function<void(const std::string&)> write_;
};

/// Takes the connections of a server in threads of its own, so that pending ones (which have not yet shown
/// what they want) hold up neither each other nor the sessions that run. The sessions of one client at a time
/// come out of next().
class Acceptor {
 public:
  /// A session that passed the handshake.
  struct Client {
    wire::Socket socket;
    std::string address;
    std::shared_ptr<Visit> visit;
    bool joined = false;  ///< to a visit that another session began
  };
  using BeginVisit = std::function<std::shared_ptr<Visit>(const std::string& address)>;

  Acceptor(wire::Listener& listener, std::string key, BeginVisit begin_visit,
           DataConnections& data_connections, Log& log);
  ~Acceptor();

  /// Begins and ends taking connections. With `visits` > 0, next() returns none after so many.
  void start(int visits);
  void end();
  /// The next session, or none after a termination signal or stop(). Its visit lasts, and other clients are
  /// told so, until leave() was called for all its sessions.
  std::optional<Client> next();
  void leave(const Client& client);
  /// Makes next() return none and breaks the connections of all sessions. From any thread.
  void stop();

 private:
  /// A connection in its handshake.
  struct Pending {
    wire::Socket socket;
    std::string address;
    bool done = false;
    std::thread thread;
  };

  void accept_connections();
  wire::Socket accept_one();
  void reap(bool all);
  void greet(Pending& pending);
  void admit(Pending& pending, const nlohmann::json& hello, Deadline deadline);
  void join(Pending& pending, const nlohmann::json& hello, Deadline deadline);
  void hand_over(Pending& pending, bool joined);
  void take_data_connection(Pending& pending, const nlohmann::json& hello, Deadline deadline);
  bool is_ending() const { return ending_ || stopped_; }

  wire::Listener& listener_;
  const std::string key_;
  const BeginVisit begin_visit_;
  DataConnections& data_connections_;
  Log& log_;
  std::atomic<bool> ending_{false};
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;  ///< of all below
  std::condition_variable changed_;
  bool counts_visits_ = false;
  int visits_left_ = 0;
  std::shared_ptr<Visit> visit_;
  std::set<int> sessions_;      ///< descriptors of the visit's sessions
  std::queue<Client> waiting_;  ///< not yet taken by next()
  std::list<Pending> pending_;
  std::set<int> accept_faults_;  ///< errno values said once; used by thread_ alone
  std::thread thread_;
};

}  // namespace gdrbench::session
