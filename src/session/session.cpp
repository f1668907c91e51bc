#include "gdrbench/session.hpp"

#include <fmt/format.h>

#include <utility>

#include "gdrbench/error.hpp"
#include "session/client.hpp"
#include "session/server.hpp"

namespace gdrbench {
namespace {

std::unique_ptr<measure::Runner> make_two_rank_runner(const Case& c, session::RankNumber number,
                                                      measure::Payload& payload) {
  const std::size_t ranks = spec(c.suite).roles.size();
  if (number.ranks != ranks)
    throw UsageError(
        fmt::format("the {} suite has {} ranks, not {}", spec(c.suite).name, ranks, number.ranks));
  return measure::make_runner(c, number.rank == 0 ? measure::Role::initiator : measure::Role::responder,
                              payload);
}

session::Harness real_harness() {
  return {make_two_rank_runner, measure::payload_bytes, measure::bounce_bytes, describe_this_end};
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

void Server::run(int visits) {
  state_->run(visits);
}

void Server::stop() {
  state_->stop();
}

Session::Session(ConnectOptions options)
    : client_(std::make_shared<session::Client>(std::move(options), real_harness())) {}
Session::Session(std::shared_ptr<session::Client> client) : client_(std::move(client)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Session Session::join() const {
  return Session(client_->join());
}

const EndInfo& Session::remote() const {
  return client_->remote();
}

std::unique_ptr<OpenCase> Session::open(const Case& initiator_case, const Case& responder_case) {
  return open_case({{nullptr, initiator_case}, {this, responder_case}});
}

nlohmann::json Session::examine(const nlohmann::json& request) {
  return session::examine(*client_, request);
}

std::unique_ptr<OpenCase> open_case(std::vector<RankPlace> ranks) {
  std::vector<session::Place> places;
  places.reserve(ranks.size());
  for (RankPlace& rank : ranks)
    places.push_back({rank.server != nullptr ? rank.server->client_ : nullptr, std::move(rank.c)});
  return session::open_case(std::move(places));
}

}  // namespace gdrbench
