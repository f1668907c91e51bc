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

#include "session/budget.hpp"
#include "session/harness.hpp"
#include "session/lane_desk.hpp"
#include "session/log.hpp"
#include "wire/socket.hpp"

namespace gdrbench::session {

/// The server's side of one client's visit. Every request gets one last answer; a run also gets "ready"
/// before it. What goes wrong with a case is answered with "error" and leaves the session usable.
class ServerSession {
 public:
  struct Settings {
    std::uint64_t max_payload_bytes;
    std::uint32_t max_queue_pairs;
    std::chrono::milliseconds idle_limit;
    std::function<nlohmann::json(const nlohmann::json&)> examine{};  ///< as in ServeOptions
  };
  ServerSession(const Settings& settings, const Harness& harness, LaneDesk& lanes, Log& log,
                wire::Socket& control, std::string address);
  ~ServerSession();

  /// Welcomes the client and answers it until it says good-bye. Throws PeerLost, Interrupted.
  void serve();

 private:
  struct OpenCase {
    OpenCase(Case c, nlohmann::json offer) : description(std::move(c)), peer_offer(std::move(offer)) {}

    const Case description;
    const nlohmann::json peer_offer;
    std::unique_ptr<Budget::Hold> hold;  // outlives the runner, which uses what it stands for
    std::unique_ptr<measure::Runner> runner;
    std::string token;  // empty once the lanes are here, and for verbs
    bool connected = false;
  };
  using Cases = std::map<std::uint64_t, std::unique_ptr<OpenCase>>;

  void answer(const nlohmann::json& request);
  void open(const nlohmann::json& request);
  void connect(const nlohmann::json& request);
  void run(const nlohmann::json& request);
  void examine(const nlohmann::json& request);
  void finish_run(Cases::iterator open_case, const std::optional<RankResult>& result, std::string fault);
  void close(Cases::iterator open_case);
  Cases::iterator find(const nlohmann::json& request);
  nlohmann::json receive(std::chrono::milliseconds patience);
  void send(const nlohmann::json& message);
  std::chrono::milliseconds stall_limit(const Case& c) const;

  const Settings settings_;
  const Harness& harness_;
  LaneDesk& lanes_;
  Log& log_;
  wire::Socket& control_;
  const std::string address_;
  bool left_ = false;
  Budget budget_;
  Cases cases_;
};

}  // namespace gdrbench::session
