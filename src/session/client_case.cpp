#include <fmt/format.h>

#include <exception>
#include <utility>

#include "base/fields.hpp"
#include "base/records.hpp"
#include "gdrbench/error.hpp"
#include "session/client.hpp"
#include "session/handshake.hpp"
#include "session/message.hpp"
#include "session/remote_json.hpp"

namespace gdrbench::session {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

// How long a failing end waits for the other end's account of the same failure, and then for the end of its
// loop.
constexpr auto account_patience = 2s;
constexpr auto abort_patience = 5s;

/// An "error" message in place of the answer that was due.
class ResponderFault : public Error {
 public:
  using Error::Error;
};

// Rethrows the exception being handled as the same kind of error, between two texts.
[[noreturn]] void rethrow_between(const std::string& before, const std::string& after) {
  const auto wrapped = [&](const std::exception& e) { return before + e.what() + after; };
  try {
    throw;
  } catch (const Interrupted&) {
    throw;
  } catch (const Unavailable& e) {
    throw Unavailable(wrapped(e));
  } catch (const UsageError& e) {
    throw UsageError(wrapped(e));
  } catch (const PeerLost& e) {
    throw PeerLost(wrapped(e));
  } catch (const std::exception& e) {
    throw Error(wrapped(e));
  }
}

// Bytes in the measured direction or directions; a round trip of reads brings data one way only.
std::uint64_t payload_moved(const Case& c, std::uint64_t iterations) {
  const bool both_ways = times_messages(c.suite) ? c.op != Op::read : c.direction == Direction::both;
  return iterations * c.size_bytes * (both_ways ? 2 : 1);
}

// Texts of the measuring side may begin with the name that the account begins with.
std::string without_name(const std::string& text, const Case& c) {
  const std::string name = case_name(c) + ": ";
  return text.starts_with(name) ? text.substr(name.size()) : text;
}

bool is_flush(const std::string& text) {
  return text.find("IBV_WC_WR_FLUSH_ERR") != std::string::npos;
}

class ClientCase : public OpenCase {
 public:
  ClientCase(std::shared_ptr<Client> client, const Case& mine, const Case& theirs);
  ~ClientCase() override { close(); }
  RunResult run(const RunRequest& request) override;
  const std::vector<PathProof>& proofs() const override { return proofs_; }

 private:
  void connect(const json& opened);
  void close() noexcept;
  [[noreturn]] void hear_fault();
  RankResult run_loop(const RunRequest& request, RunResult& out);
  RankResult conclude(const RunRequest& request);
  [[noreturn]] void give_up(const std::exception& fault);
  /// What both ends know of a failure, in one text; flushes are left out beside a cause.
  std::string account(std::string mine, std::string theirs) const;

  std::shared_ptr<Client> client_;
  const Case case_;
  const std::uint64_t id_;
  std::unique_ptr<measure::Runner> runner_;  // none once the case is closed
  std::vector<PathProof> proofs_{2};         // by rank
};

ClientCase::ClientCase(std::shared_ptr<Client> client, const Case& mine, const Case& theirs)
    : client_(std::move(client)), case_(mine), id_(client_->next_id()) {
  try {
    runner_ = client_->harness().make_runner(case_, measure::Role::initiator, client_->payload());
  } catch (...) {
    rethrow_between("initiator: ", "");
  }
  try {
    client_->send({{"type", "open"}, {"id", id_}, {"case", to_json(theirs)}, {"offer", runner_->offer()}});
    const json opened = client_->receive();
    expect_type(opened, "opened", client_->responder() + ": ");
    connect(opened);
  } catch (...) {
    close();
    throw;
  }
}

void ClientCase::connect(const json& opened) {
  const json offer = object_of(opened, "offer", client_->responder());
  std::vector<wire::Socket> sockets;
  if (!uses_verbs(case_.path))
    for (std::uint32_t lane = 0; lane < case_.queue_pairs; ++lane)
      sockets.push_back(open_lane(client_->server(), text_of(opened, "token"), lane,
                                  after(client_->options().connect_timeout)));
  client_->send({{"type", "connect"}, {"id", id_}});
  try {
    runner_->connect(offer, std::move(sockets));
    proofs_[0] = runner_->describe();
  } catch (const Interrupted&) {
    throw;
  } catch (const json::exception& fault) {
    throw PeerLost(
        fmt::format("{}: broke the protocol: its offer: {}", client_->responder(), words_of(fault)));
  } catch (const std::exception& fault) {
    // Also read now, so that the next request does not get this answer.
    const json reply = client_->receive();
    const std::string theirs = type_of(reply) == "error" ? text_of(reply, "text") : "";
    const bool is_theirs = theirs.empty() && dynamic_cast<const PeerLost*>(&fault) != nullptr;
    rethrow_between(is_theirs ? client_->responder() + ": " : "initiator: ",
                    theirs.empty() ? "" : fmt::format("; {}: {}", client_->responder(), theirs));
  }
  const json reply = client_->receive();
  expect_type(reply, "connected", client_->responder() + ": ");
  proofs_[1] = proof_of(reply, client_->responder());
}

void ClientCase::close() noexcept {
  if (!runner_) return;
  client_->try_send({{"type", "close"}, {"id", id_}});
  runner_.reset();
}

RunResult ClientCase::run(const RunRequest& request) {
  if (!runner_) throw Error(fmt::format("{}: the case was closed after a failure", case_name(case_)));
  json start = to_json(request);
  request_from_json(start);  // throws UsageError before the server has to
  start["type"] = "run";
  start["id"] = id_;
  client_->send(start);

  RunResult out;
  RankResult mine;
  try {
    mine = run_loop(request, out);
  } catch (const std::exception& fault) {
    give_up(fault);
  }
  RankResult theirs = conclude(request);
  out.iterations = request.iterations;
  out.elapsed_s = mine.elapsed_s;
  out.payload_bytes = payload_moved(case_, request.iterations);
  out.ranks.push_back(std::move(mine));
  out.ranks.push_back(std::move(theirs));
  out.verified = true;
  return out;
}

RankResult ClientCase::run_loop(const RunRequest& request, RunResult& out) {
  runner_->prepare(request);
  const json ready = client_->receive();
  if (type_of(ready) == "error") throw ResponderFault(text_of(ready, "text"));
  expect_type(ready, "ready", client_->responder() + ": ");
  out.started = utc_now();
  measure::Watch watch(client_->control_fd(), client_->options().stall_limit, request.deadline);
  RankResult mine;
  try {
    mine = runner_->run(watch);
  } catch (const measure::PeerSpoke&) {
    hear_fault();
  }
  if (client_->has_answer(0ms)) hear_fault();
  return mine;
}

// Before "finish" the server speaks only of its fault, or is gone.
void ClientCase::hear_fault() {
  const json message = client_->receive();
  expect_type(message, "error", client_->responder() + ": ");
  throw ResponderFault(text_of(message, "text"));
}

// Both ends verify at the same time. The server's answer is read whatever happens here.
RankResult ClientCase::conclude(const RunRequest& request) {
  client_->send({{"type", "finish"}});
  std::string mine;
  try {
    mine = runner_->verify();
    proofs_[0] = runner_->describe();
  } catch (const std::exception& fault) {
    mine = fault.what();
  }
  const json done = client_->receive();
  if (type_of(done) == "error") {
    close();
    throw Error(account(mine, text_of(done, "text")));
  }
  expect_type(done, "done", client_->responder() + ": ");
  const std::string theirs = verdict_of(done, client_->responder());
  if (!mine.empty() || !theirs.empty()) throw Error(account(mine, theirs));
  proofs_[1] = proof_of(done, client_->responder());
  return result_of(done, case_, request, client_->responder());
}

// The server gives one last answer to a run, and the client always ends a run with one message: so the
// control channel stays in step, and other cases stay usable.
void ClientCase::give_up(const std::exception& fault) {
  const json abort = {{"type", "abort"}, {"text", fault.what()}};
  if (dynamic_cast<const Interrupted*>(&fault) != nullptr) {
    client_->try_send(abort);
    close();
    throw Interrupted();
  }
  if (dynamic_cast<const OutOfTime*>(&fault) != nullptr) {
    client_->send(abort);
    client_->receive(abort_patience);  // whatever it says: the channel stays in step
    close();
    throw OutOfTime();
  }
  if (dynamic_cast<const ResponderFault*>(&fault) != nullptr) {
    client_->try_send(abort);
    close();
    throw Error(account("", fault.what()));
  }
  if (client_->lost()) {  // the fault is that loss, or followed from it: nobody is left to ask
    close();
    throw PeerLost(fmt::format("{}: {}", case_name(case_), fault.what()));
  }
  std::string theirs;
  try {
    client_->has_answer(account_patience);
    client_->send(abort);
    const json answer = client_->receive(abort_patience);
    if (type_of(answer) == "error") theirs = text_of(answer, "text");
  } catch (const PeerLost& gone) {
    close();
    throw PeerLost(
        fmt::format("{}: {}; before that, the initiator: {}", case_name(case_), gone.what(), fault.what()));
  }
  close();
  const std::string text = account(fault.what(), theirs);
  if (theirs.empty() && dynamic_cast<const PeerLost*>(&fault) != nullptr) throw PeerLost(text);
  throw Error(text);
}

std::string ClientCase::account(std::string mine, std::string theirs) const {
  if (is_flush(mine) && !theirs.empty() && !is_flush(theirs)) mine.clear();
  if (is_flush(theirs) && !mine.empty() && !is_flush(mine)) theirs.clear();
  mine = without_name(mine, case_);
  theirs = without_name(theirs, case_);
  std::string text = case_name(case_);
  if (!mine.empty()) text += ": initiator: " + mine;
  if (!theirs.empty())
    text += fmt::format("{} {}: {}", mine.empty() ? ":" : ";", client_->responder(), theirs);
  return text;
}

}  // namespace

std::unique_ptr<OpenCase> open_case(std::shared_ptr<Client> client, const Case& initiator_case,
                                    const Case& responder_case) {
  return std::make_unique<ClientCase>(std::move(client), initiator_case, responder_case);
}

}  // namespace gdrbench::session
