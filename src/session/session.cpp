#include "gdrbench/session.hpp"

#include <utility>

#include "session/client.hpp"
#include "session/examination.hpp"
#include "session/server_core.hpp"

namespace gdrbench {
namespace {

session::Harness real_harness() {
  return {measure::make_runner, measure::payload_bytes, measure::bounce_bytes, describe_this_end};
}

}  // namespace

struct Server::State : session::ServerCore {
  using ServerCore::ServerCore;
};

Server::Server(ServeOptions options) : state_(std::make_unique<State>(std::move(options), real_harness())) {}
Server::~Server() = default;

std::uint16_t Server::port() const {
  return state_->port();
}

void Server::run(int sessions) {
  state_->run(sessions);
}

void Server::stop() {
  state_->stop();
}

struct Session::State : session::Client {
  using Client::Client;
};

Session::Session(ConnectOptions options)
    : state_(std::make_shared<State>(std::move(options), real_harness())) {}
Session::~Session() = default;

const EndInfo& Session::remote() const {
  return state_->remote();
}

std::unique_ptr<OpenCase> Session::open(const Case& initiator_case, const Case& responder_case) {
  return session::open_case(state_, initiator_case, responder_case);
}

nlohmann::json Session::examine(const nlohmann::json& request) {
  return session::examine(*state_, request);
}

}  // namespace gdrbench
