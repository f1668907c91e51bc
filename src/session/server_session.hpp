#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "session/acceptor.hpp"
#include "session/budget.hpp"
#include "session/data_connections.hpp"
#include "session/harness.hpp"

namespace gdrbench::session {

/// The server's side of one session. Every request gets one last answer; a run also gets "ready" before it,
/// and "ended" where this rank is the one that measures. What goes wrong with a case is answered with "error"
/// and leaves the session usable.
class ServerSession {
 public:
  struct Settings {
    std::chrono::milliseconds idle_limit;
    std::function<nlohmann::json(const nlohmann::json&)> examine{};  ///< as in ServeOptions
  };
  ServerSession(const Harness& harness, Settings settings, DataConnections& data_connections, Log& log,
                Acceptor::Client& client);
  ~ServerSession();

  /// Welcomes the client and answers it until it says good-bye. Throws PeerLost, Interrupted.
  void serve();

 private:
  /// One rank of a case, run by this server.
  struct OpenCase {
    OpenCase(Case c, RankNumber place) : description(std::move(c)), number(place) {}

    const Case description;
    const RankNumber number;
    std::unique_ptr<Budget::Hold> hold;  // outlives the runner, which uses what it stands for
    std::unique_ptr<measure::Runner> runner;
    std::vector<std::string> tokens;  // by rank, of data connections that are awaited; else empty
    bool connected = false;
  };
  using Cases = std::map<std::uint64_t, std::unique_ptr<OpenCase>>;

  void answer(const nlohmann::json& request);
  void open(const nlohmann::json& request);
  void connect(const nlohmann::json& request);
  void run(const nlohmann::json& request);
  void examine(const nlohmann::json& request);
  std::vector<measure::RankLink> links(OpenCase& c, const nlohmann::json& request);
  RankResult run_loop(OpenCase& c, const nlohmann::json& go);
  void finish_run(Cases::iterator open_case, const nlohmann::json& end,
                  const std::optional<RankResult>& result, std::string fault);
  void close(Cases::iterator open_case);
  Cases::iterator find(const nlohmann::json& request);
  nlohmann::json receive_request();
  nlohmann::json receive(std::chrono::milliseconds patience);
  void send(const nlohmann::json& message);

  const Harness& harness_;
  const Settings settings_;
  DataConnections& data_connections_;
  Log& log_;
  Acceptor::Client& client_;
  bool left_ = false;
  Budget budget_;
  Cases cases_;
};

}  // namespace gdrbench::session
