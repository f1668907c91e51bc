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

#include "base/records.hpp"
#include "gdrbench/error.hpp"
#include "session/channel.hpp"
#include "session/client.hpp"
#include "session/handshake.hpp"
#include "session/server.hpp"

/// Servers and a client of the real protocol whose runners only bounce single bytes over their data
/// connections: rank 0 sends one to every other rank and gets it back.
namespace gdrbench::session::fake {

using namespace std::chrono_literals;
using nlohmann::json;

/// How the runners of one process behave; changed by tests between requests.
struct Behaviour {
  std::string cannot_run;      ///< make_runner throws Unavailable
  std::string cannot_connect;  ///< connect throws
  std::string prepare_fault;   ///< prepare throws
  std::string run_fault;       ///< run throws
  std::string wrong_byte;      ///< what verify returns
  bool silent = false;         ///< run moves nothing
  std::uint64_t payload_bytes = 4096;
  std::uint64_t bounce_bytes = 0;
};

class Runner : public measure::Runner {
 public:
  Runner(const Behaviour& behaviour, const Case& c, RankNumber number, std::atomic<int>& alive)
      : behaviour_(behaviour), name_(role_name(c, number)), number_(number), alive_(alive) {
    ++alive_;
  }
  ~Runner() override { --alive_; }

  json offer() override { return {{"from", name_}}; }
  void connect(std::vector<measure::RankLink> ranks) override {
    if (!behaviour_.cannot_connect.empty()) throw Error(behaviour_.cannot_connect);
    for (const measure::RankLink& rank : ranks)
      offers_ += (offers_.empty() ? "" : ", ") + rank.offer.at("from").get<std::string>();
    ranks_ = std::move(ranks);
  }
  void prepare(const RunRequest& request) override {
    if (!behaviour_.prepare_fault.empty()) throw Error(behaviour_.prepare_fault);
    request_ = request;
  }
  RankResult run(measure::Watch& watch) override {
    if (!behaviour_.run_fault.empty()) throw Error(behaviour_.run_fault);
    RankResult result;
    result.elapsed_s = 1.5 + number_.rank;
    result.cpu.user_s = result.elapsed_s / 2;
    const bool over_verbs = ranks_[number_.rank == 0 ? 1 : 0].connections.empty();
    if (number_.rank == 0) {
      if (!over_verbs) serve_balls(watch, result);
      result.latency_us.emplace();
      result.latency_us->p50 = 7;
    } else if (!over_verbs) {
      while (behaviour_.silent || !echo(result))
        if (!watch.idle()) return result;
    }
    return result;
  }
  std::string verify() override { return behaviour_.wrong_byte; }
  PathProof describe() override {
    TcpProof proof;
    for (const measure::RankLink& rank : ranks_)
      proof.sockets += static_cast<std::uint32_t>(rank.connections.size());
    proof.remote = offers_;
    return {.tcp = proof};
  }

 private:
  void serve_balls(measure::Watch& watch, RankResult& result) {
    while (behaviour_.silent)
      if (!watch.idle()) throw measure::EndedEarly();
    while (result.messages_received < request_.iterations) {
      for (measure::RankLink& rank : ranks_) {
        if (rank.connections.empty()) continue;  // this one
        std::byte ball{};
        wire::Socket& connection = rank.connections[result.messages_sent % rank.connections.size()];
        connection.send_all({&ball, 1}, after(1s), "serving a ball");
        while (::recv(connection.fd(), &ball, 1, 0) != 1)
          if (!watch.idle()) throw measure::EndedEarly();
        watch.active();
      }
      ++result.messages_sent;
      ++result.messages_received;
      result.samples_ns.push_back(1000);
    }
  }
  bool echo(RankResult& result) {
    for (wire::Socket& connection : ranks_[0].connections) {
      std::byte ball{};
      if (::recv(connection.fd(), &ball, 1, 0) != 1) continue;
      connection.send_all({&ball, 1}, after(1s), "returning a ball");
      ++result.messages_received;
    }
    return false;
  }

  const Behaviour& behaviour_;
  const std::string name_;
  const RankNumber number_;
  std::atomic<int>& alive_;
  std::string offers_;
  std::vector<measure::RankLink> ranks_;
  RunRequest request_;
};

inline EndInfo describe_end() {
  EndInfo end;
  end.host = "fake";
  end.cuda.unavailable = "none";
  RdmaDeviceInfo device;
  device.name = "fake0";
  device.link_layer = "Ethernet";
  device.active_mtu = 1024;
  device.link_bytes_per_second = 1e9;
  end.rdma.devices.push_back(device);
  return end;
}

inline Harness harness(const Behaviour& behaviour, std::atomic<int>& alive) {
  return {[&](const Case& c, RankNumber number, measure::Payload&) -> std::unique_ptr<measure::Runner> {
            if (!behaviour.cannot_run.empty()) throw Unavailable(behaviour.cannot_run);
            return std::make_unique<Runner>(behaviour, c, number, alive);
          },
          [&](const Case&) { return behaviour.payload_bytes; },
          [&](const Case&) { return behaviour.bounce_bytes; }, describe_end};
}

inline ServeOptions with_key(const std::string& key) {
  ServeOptions options;
  options.key = key;
  return options;
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

  json welcome = {{"type", "welcome"}, {"end", to_json(describe_end())}, {"visit", "token"}};
  json opened = {{"type", "opened"}, {"tokens", {"", ""}}, {"offer", {{"from", "responder"}}}};
  json connected = {{"type", "connected"}, {"describe", to_json(PathProof{})}};
  json done = {{"type", "done"},
               {"fault", ""},
               {"describe", to_json(PathProof{})},
               {"result", to_json(RankResult{.elapsed_s = 1, .messages_received = 5})}};

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
