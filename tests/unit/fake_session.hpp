#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gdrbench/error.hpp"
#include "session/case_json.hpp"
#include "session/client.hpp"
#include "session/frame.hpp"
#include "session/handshake.hpp"
#include "session/message.hpp"
#include "session/server_core.hpp"

/// A server and a client of the real protocol whose runners only bounce single bytes over their TCP lanes.
namespace gdrbench::session::fake {

using namespace std::chrono_literals;
using nlohmann::json;

/// How the runners of one end behave; changed by tests between requests.
struct Behaviour {
  std::string cannot_run;      ///< make_runner throws Unavailable
  std::string cannot_connect;  ///< connect throws
  std::string run_fault;       ///< run throws
  std::string wrong_byte;      ///< what verify returns
  bool silent = false;         ///< run moves nothing
  std::uint64_t payload_bytes = 4096;
  std::uint64_t bounce_bytes = 0;
};

class Runner : public measure::Runner {
 public:
  Runner(const Behaviour& behaviour, measure::Role role, std::atomic<int>& alive)
      : behaviour_(behaviour), role_(role), alive_(alive) {
    ++alive_;
  }
  ~Runner() override { --alive_; }

  json offer() override { return {{"from", role_ == measure::Role::initiator ? "initiator" : "responder"}}; }
  void connect(const json& peer_offer, std::vector<wire::Socket> sockets) override {
    if (!behaviour_.cannot_connect.empty()) throw Error(behaviour_.cannot_connect);
    peer_offer.at("from");
    peer_offer_ = peer_offer;
    sockets_ = std::move(sockets);
  }
  void prepare(const RunRequest& request) override { request_ = request; }
  EndResult run(measure::Watch& watch) override {
    if (!behaviour_.run_fault.empty()) throw Error(behaviour_.run_fault);
    EndResult result;
    result.elapsed_s = role_ == measure::Role::initiator ? 1.5 : 2.5;
    result.cpu.user_s = result.elapsed_s / 2;
    if (sockets_.empty()) return result;  // a verbs path
    if (role_ == measure::Role::responder) {
      while (behaviour_.silent || !echo(result)) {
        if (!watch.idle()) return result;
      }
    }
    while (result.messages_received < request_.iterations) {
      std::byte ball{};
      wire::Socket& lane = sockets_[result.messages_sent++ % sockets_.size()];
      lane.send_all({&ball, 1}, after(1s), "serving a ball");
      while (::recv(lane.fd(), &ball, 1, 0) != 1)
        if (!watch.idle()) throw measure::PeerSpoke();
      watch.active();
      ++result.messages_received;
      result.samples_us.push_back(1);
    }
    return result;
  }
  std::string verify() override { return behaviour_.wrong_byte; }
  json describe() override { return {{"peer_offer", peer_offer_}, {"lanes", sockets_.size()}}; }

 private:
  bool echo(EndResult& result) {
    for (wire::Socket& lane : sockets_) {
      std::byte ball{};
      if (::recv(lane.fd(), &ball, 1, 0) != 1) continue;
      lane.send_all({&ball, 1}, after(1s), "returning a ball");
      ++result.messages_received;
    }
    return false;
  }

  const Behaviour& behaviour_;
  measure::Role role_;
  std::atomic<int>& alive_;
  json peer_offer_;
  std::vector<wire::Socket> sockets_;
  RunRequest request_;
};

inline json describe_end() {
  const json device = {{"name", "fake0"},    {"fabric", "hardware"}, {"link_layer", "Ethernet"},
                       {"active_mtu", 1024}, {"unusable", ""},       {"link_bytes_per_second", 1e9}};
  return {{"host", "fake"},
          {"gpu", {{"unavailable", "none"}}},
          {"rdma", {{"devices", {device}}, {"unavailable", ""}}}};
}

inline Harness harness(const Behaviour& behaviour, std::atomic<int>& alive) {
  return {[&](const Case&, measure::Role role, measure::Payload&) -> std::unique_ptr<measure::Runner> {
            if (!behaviour.cannot_run.empty()) throw Unavailable(behaviour.cannot_run);
            return std::make_unique<Runner>(behaviour, role, alive);
          },
          [&](const Case&) { return behaviour.payload_bytes; },
          [&](const Case&) { return behaviour.bounce_bytes; }, describe_end};
}

/// Serves on a free loopback port in a thread of its own, and keeps the log.
class Server {
 public:
  explicit Server(ServeOptions options = {}) {
    options.port = 0;
    options.log = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      log_ += line + "\n";
    };
    core_ = std::make_unique<ServerCore>(options, harness(behaviour, alive));
    thread_ = std::thread([this] { core_->run(0); });
  }
  ~Server() { stop(); }
  void stop() {
    core_->stop();
    if (thread_.joinable()) thread_.join();
  }
  std::uint16_t port() const { return core_->port(); }
  std::string name() const { return "127.0.0.1:" + std::to_string(port()); }
  std::string log() {
    const std::lock_guard lock(mutex_);
    return log_;
  }
  /// Whether the log shows `part` within five seconds.
  bool logs(const std::string& part) {
    for (const auto deadline = after(5s); std::chrono::steady_clock::now() < deadline;) {
      {
        const std::lock_guard lock(mutex_);
        if (log_.find(part) != std::string::npos) return true;
      }
      std::this_thread::sleep_for(5ms);
    }
    ADD_FAILURE() << "no '" << part << "' in the server's log:\n" << log_;
    return false;
  }

  Behaviour behaviour;
  std::atomic<int> alive{0};

 private:
  std::mutex mutex_;
  std::string log_;
  std::unique_ptr<ServerCore> core_;
  std::thread thread_;
};

/// A server of the real handshake whose answers are made up.
class BrokenServer {
 public:
  BrokenServer() : thread_([this] { serve(); }) {}
  ~BrokenServer() { thread_.join(); }
  BrokenServer(const BrokenServer&) = delete;
  BrokenServer& operator=(const BrokenServer&) = delete;
  ConnectOptions options() const {
    ConnectOptions o;
    o.port = listener_.port();
    return o;
  }

  json welcome = {{"type", "welcome"}, {"end", describe_end()}};
  json opened = {{"type", "opened"}, {"token", ""}, {"offer", {{"from", "responder"}}}};
  json connected = {{"type", "connected"}, {"describe", json::object()}};
  json done = {{"type", "done"},
               {"fault", ""},
               {"describe", json::object()},
               {"result", end_result_to_json({.elapsed_s = 1, .messages_received = 5})}};

 private:
  void serve() try {
    wire::Socket socket = listener_.accept(after(5s));
    greet_client(socket, receive_message(socket, after(5s), "test"), "", after(5s));
    send_message(socket, welcome, after(5s), "test");
    for (;;) {
      const std::string type = type_of(receive_message(socket, after(5s), "test"));
      if (type == "bye") return;
      if (type == "open") send_message(socket, opened, after(5s), "test");
      if (type == "connect") send_message(socket, connected, after(5s), "test");
      if (type == "run") send_message(socket, {{"type", "ready"}}, after(5s), "test");
      if (type == "finish") send_message(socket, done, after(5s), "test");
    }
  } catch (const PeerLost&) {  // the client left
  }

  wire::Listener listener_{{"127.0.0.1", 0}};
  std::thread thread_;
};

/// What the tests of one server need at the client's end.
class ServerTest : public ::testing::Test {
 protected:
  ConnectOptions options(const Server& server, const std::string& key = "") const {
    ConnectOptions o;
    o.port = server.port();
    o.key = key;
    o.stall_limit = 3s;
    return o;
  }
  std::shared_ptr<Client> client(const Server& server, const std::string& key = "") {
    return std::make_shared<Client>(options(server, key), harness(behaviour, alive));
  }
  wire::Socket raw(const Server& server) const {
    return wire::connect_tcp({"127.0.0.1", server.port()}, after(2s));
  }
  static json ask(wire::Socket& socket, const json& message) {
    send_message(socket, message, after(2s), "test");
    return receive_message(socket, after(5s), "test");
  }
  static bool closed_within(wire::Socket& socket, std::chrono::milliseconds limit) {
    try {
      for (;;) receive_message(socket, after(limit), "test");
    } catch (const PeerLost& gone) {
      return std::string(gone.what()).find("silent") == std::string::npos;
    }
  }

  Behaviour behaviour;
  std::atomic<int> alive{0};
};

/// The text of the E that the call throws.
template <class E, class Call>
std::string thrown(Call call) {
  try {
    call();
  } catch (const E& fault) {
    return fault.what();
  } catch (const std::exception& other) {
    ADD_FAILURE() << "another error: " << other.what();
    return "";
  }
  ADD_FAILURE() << "nothing thrown";
  return "";
}

}  // namespace gdrbench::session::fake
