#include "session/server_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/fields.hpp"
#include "base/records.hpp"
#include "gdrbench/error.hpp"
#include "session/examination.hpp"
#include "session/frame.hpp"
#include "session/message.hpp"

namespace gdrbench::session {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr auto send_limit = 10s;
constexpr auto lanes_limit = 5s;
// How long a client that was told of a fault may take to end its run.
constexpr auto fault_patience = 5s;
constexpr std::uint64_t most_cases = std::uint64_t{1} << 53;

}  // namespace

ServerSession::ServerSession(const Settings& settings, const Harness& harness, LaneDesk& lanes, Log& log,
                             wire::Socket& control, std::string address)
    : settings_(settings),
      harness_(harness),
      lanes_(lanes),
      log_(log),
      control_(control),
      address_(std::move(address)),
      budget_(settings.max_payload_bytes, settings.max_queue_pairs) {}

ServerSession::~ServerSession() {
  while (!cases_.empty()) close(cases_.begin());
}

void ServerSession::serve() {
  send({{"type", "welcome"}, {"end", to_json(harness_.describe_end())}});
  while (!left_) {
    const json request = receive(settings_.idle_limit);
    try {
      answer(request);
    } catch (const PeerLost&) {
      throw;
    } catch (const Interrupted&) {
      throw;
    } catch (const std::exception& fault) {
      log_(fmt::format("{} {}: {}", address_, type_of(request), fault.what()));
      send(error_message(fault));
    }
  }
}

void ServerSession::answer(const json& request) {
  const std::string type = type_of(request);
  if (type == "open") return open(request);
  if (type == "connect") return connect(request);
  if (type == "run") return run(request);
  if (type == "examine") return examine(request);
  if (type == "close") {
    // Has no answer, and may name a case that failed and is gone.
    const auto found = cases_.find(Fields(request, type).number("id", 0, most_cases));
    if (found != cases_.end()) close(found);
    return;
  }
  if (type != "bye") throw PeerLost(fmt::format("broke the protocol: it sent '{}'", type));
  left_ = true;
}

void ServerSession::open(const json& request) {
  const Fields fields(request, "open");
  const std::uint64_t id = fields.number("id", 0, most_cases);
  if (cases_.contains(id)) throw UsageError(fmt::format("open.id: case {} is open already", id));
  Case asked = case_from_json(fields.at("case"));
  auto opened = std::make_unique<OpenCase>(std::move(asked), fields.at("offer"));
  const Case& c = opened->description;
  opened->hold = budget_.reserve(c, harness_.payload_bytes(c), harness_.bounce_bytes(c));
  opened->runner = harness_.make_runner(c, measure::Role::responder, budget_.payload());
  budget_.settle();
  json answer = {{"type", "opened"}, {"offer", opened->runner->offer()}, {"token", ""}};
  if (!uses_verbs(c.path)) answer["token"] = opened->token = lanes_.expect(c.queue_pairs);
  log_(fmt::format("{} {}", address_, case_name(c)));
  cases_.emplace(id, std::move(opened));
  send(answer);
}

void ServerSession::connect(const json& request) {
  const auto found = find(request);
  OpenCase& c = *found->second;
  if (c.connected) throw UsageError("connect.id: the case is connected already");
  try {
    std::vector<wire::Socket> sockets;
    if (!c.token.empty()) sockets = lanes_.collect(c.token, after(lanes_limit));
    c.token.clear();
    c.runner->connect(c.peer_offer, std::move(sockets));
    c.connected = true;
    send({{"type", "connected"}, {"describe", to_json(c.runner->describe())}});
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& fault) {
    // Of one connection of the case; whether the control channel is gone too shows when this is sent.
    log_(fmt::format("{} {}: {}", address_, case_name(c.description), fault.what()));
    close(found);
    send(error_message(fault));
  }
}

void ServerSession::run(const json& request) {
  const auto found = find(request);
  OpenCase& c = *found->second;
  std::optional<RankResult> result;
  std::string fault_text;
  try {
    if (!c.connected) throw UsageError("run.id: the case is not connected");
    c.runner->prepare(request_from_json(request));
    send({{"type", "ready"}});
    measure::Watch watch(control_.fd(), stall_limit(c.description));
    result = c.runner->run(watch);
  } catch (const Interrupted&) {
    throw;
  } catch (const measure::PeerSpoke&) {  // and is heard next
  } catch (const std::exception& fault) {
    fault_text = fault.what();
    send(error_message(fault));  // wakes the other end's loop
  }
  finish_run(found, result, fault_text);
}

void ServerSession::examine(const json& request) {
  if (!settings_.examine) throw Unavailable("this server does not examine its machine");
  log_(fmt::format("{} examines this machine", address_));
  for (const json& part : parts_of(settings_.examine(Fields(request, "examine").at("request")))) send(part);
}

// The client ends every run with one message. After a fault it has had its answer already.
void ServerSession::finish_run(Cases::iterator open_case, const std::optional<RankResult>& result,
                               std::string fault) {
  const std::chrono::milliseconds patience = fault.empty() ? settings_.idle_limit : fault_patience;
  const json end = receive(std::min(settings_.idle_limit, patience));
  const std::string type = type_of(end);
  if (type == "bye") {
    left_ = true;
    return;
  }
  if (type != "finish" && type != "abort")
    throw PeerLost(fmt::format("broke the protocol: it sent '{}' in a run", type));
  if (type == "finish" && result) {
    measure::Runner& runner = *open_case->second->runner;
    const std::string wrong = runner.verify();
    return send({{"type", "done"},
                 {"result", to_json(*result)},
                 {"fault", wrong},
                 {"describe", to_json(runner.describe())}});
  }
  const bool answered = !fault.empty();
  if (!answered) {
    fault = type == "abort" ? "given up by the client: " + text_of(end, "text")
                            : "the client says that the run is over, but messages are missing here";
  }
  log_(fmt::format("{} {}: {}", address_, case_name(open_case->second->description), fault));
  close(open_case);
  if (!answered) send(type == "abort" ? json{{"type", "aborted"}} : error_message(Error(fault)));
}

void ServerSession::close(Cases::iterator open_case) {
  if (!open_case->second->token.empty()) lanes_.forget(open_case->second->token);
  cases_.erase(open_case);
}

ServerSession::Cases::iterator ServerSession::find(const json& request) {
  const std::uint64_t id = Fields(request, type_of(request)).number("id", 0, most_cases);
  const auto found = cases_.find(id);
  if (found == cases_.end()) throw UsageError(fmt::format("{}.id: no case {} is open", type_of(request), id));
  return found;
}

json ServerSession::receive(std::chrono::milliseconds patience) {
  return receive_message(control_, after(patience), "waiting for its next message");
}

void ServerSession::send(const json& message) {
  send_message(control_, message, after(send_limit), fmt::format("answering '{}'", type_of(message)));
}

std::chrono::milliseconds ServerSession::stall_limit(const Case& c) const {
  // The target of a NIC's write and read sees nothing move, however well the run goes; the control channel
  // still tells it of a client that ended.
  const bool one_sided = spec(c.path).wire != WireKind::tcp && (c.op == Op::write || c.op == Op::read);
  return one_sided ? 10 * settings_.idle_limit : settings_.idle_limit;
}

}  // namespace gdrbench::session
