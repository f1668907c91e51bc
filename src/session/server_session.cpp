#include "session/server_session.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/fields.hpp"
#include "base/records.hpp"
#include "gdrbench/error.hpp"
#include "session/channel.hpp"

namespace gdrbench::session {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr auto send_limit = 10s;
constexpr auto connections_limit = 5s;
// How long a client that was told of a fault may take to end its run.
constexpr auto fault_patience = 5s;
constexpr auto max_stall_limit = 24h;
constexpr std::uint64_t max_case_id = std::uint64_t{1} << 53;
constexpr std::uint32_t max_ranks = 1024;
constexpr std::size_t max_host_bytes = 255;
constexpr std::size_t max_dial_token_bytes = 64;

const json& list_at(const Fields& fields, std::string_view key, std::size_t max) {
  const json& list = fields.at(key);
  if (!list.is_array()) refuse_value(fields.name_of(key), "not an array");
  if (list.size() > max) refuse_value(fields.name_of(key), fmt::format("more than {} entries", max));
  return list;
}

// What the client says of the longest time without progress, which is its own affair where this rank
// measures.
std::chrono::milliseconds stall_limit_of(const json& go, const Case& c, std::uint32_t rank,
                                         std::chrono::milliseconds idle_limit) {
  if (rank == 0)
    return std::chrono::milliseconds(
        Fields(go, "go").number("stall_limit_ms", 1, std::chrono::milliseconds(max_stall_limit).count()));
  // The target of a NIC's write and read sees nothing move, however well the run goes; the control channel
  // still tells it of a client that ended.
  const bool one_sided = spec(c.path).wire != WireKind::tcp && (c.op == Op::write || c.op == Op::read);
  return one_sided ? 10 * idle_limit : idle_limit;
}

}  // namespace

ServerSession::ServerSession(const Harness& harness, Settings settings, DataConnections& data_connections,
                             Log& log, Acceptor::Client& client)
    : harness_(harness),
      settings_(std::move(settings)),
      data_connections_(data_connections),
      log_(log),
      client_(client),
      budget_(client.visit->limits) {}

ServerSession::~ServerSession() {
  while (!cases_.empty()) close(cases_.begin());
}

void ServerSession::serve() {
  json welcome = {{"type", "welcome"}};
  if (!client_.joined) {
    welcome["end"] = to_json(harness_.describe_end());
    welcome["visit"] = client_.visit->token;
  }
  send(welcome);
  while (!left_) {
    const json request = receive_request();
    const Visit::Work work(*client_.visit);
    try {
      answer(request);
    } catch (const PeerLost&) {
      throw;
    } catch (const Interrupted&) {
      throw;
    } catch (const std::exception& fault) {
      log_(fmt::format("{} {}: {}", client_.address, type_of(request), fault.what()));
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
    const auto found = cases_.find(Fields(request, type).number("id", 0, max_case_id));
    if (found != cases_.end()) close(found);
    return;
  }
  if (type != "bye") throw PeerLost(fmt::format("protocol violation: it sent '{}'", type));
  left_ = true;
}

void ServerSession::open(const json& request) {
  const Fields fields(request, "open");
  const std::uint64_t id = fields.number("id", 0, max_case_id);
  if (cases_.contains(id)) throw UsageError(fmt::format("open.id: case {} is open already", id));
  Case asked = case_from_json(fields.at("case"));
  RankNumber number;
  number.ranks = fields.number_as<std::uint32_t>("ranks", 2, max_ranks);
  number.rank = fields.number_as<std::uint32_t>("rank", 0, number.ranks - 1);
  auto opened = std::make_unique<OpenCase>(std::move(asked), number);
  const Case& c = opened->description;
  opened->hold = budget_.reserve(c, harness_.payload_bytes(c), harness_.bounce_bytes(c), number.ranks - 1);
  opened->runner = harness_.make_runner(c, number, budget_.payload());
  budget_.settle();
  json answer = {{"type", "opened"}, {"offer", opened->runner->offer()}};
  opened->tokens.resize(number.ranks);
  for (const json& remote : list_at(fields, "accept", number.ranks - 1)) {
    std::string& token = opened->tokens[read_whole(remote, fields.name_of("accept"), 0, number.ranks - 1)];
    if (token.empty()) token = data_connections_.expect(c.queue_pairs);
  }
  answer["tokens"] = opened->tokens;
  log_(fmt::format("{} {}", client_.address, case_name(c)));
  cases_.emplace(id, std::move(opened));
  send(answer);
}

void ServerSession::connect(const json& request) {
  const auto found = find(request);
  OpenCase& c = *found->second;
  if (c.connected) throw UsageError("connect.id: the case is connected already");
  try {
    c.runner->connect(links(c, request));
    c.connected = true;
    send({{"type", "connected"}, {"describe", to_json(c.runner->describe())}});
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& fault) {
    // Of one connection of the case; whether the control channel is gone too shows when this is sent.
    log_(fmt::format("{} {}: {}", client_.address, case_name(c.description), fault.what()));
    close(found);
    send(error_message(fault));
  }
}

// Opens the data connections that this rank has to open before it waits for those that others open.
std::vector<measure::RankLink> ServerSession::links(OpenCase& c, const json& request) {
  const Fields fields(request, "connect");
  const json& offers = list_at(fields, "offers", c.number.ranks);
  if (offers.size() != c.number.ranks)
    throw UsageError(
        fmt::format("connect.offers: {} entries, but the case has {} ranks", offers.size(), c.number.ranks));
  std::vector<measure::RankLink> links(c.number.ranks);
  for (std::size_t rank = 0; rank < links.size(); ++rank) links[rank].offer = offers[rank];
  for (const json& entry : list_at(fields, "dial", c.number.ranks - 1)) {
    const Fields dial(entry, "connect.dial");
    const wire::Address server{dial.text("host", max_host_bytes),
                               dial.number_as<std::uint16_t>("port", 1, 65'535)};
    links[dial.number("rank", 0, c.number.ranks - 1)].connections = open_data_connections(
        server, dial.text("token", max_dial_token_bytes), c.description.queue_pairs, connections_limit);
  }
  for (std::size_t rank = 0; rank < links.size(); ++rank) {
    if (c.tokens[rank].empty()) continue;
    links[rank].connections = data_connections_.collect(c.tokens[rank], after(connections_limit));
    c.tokens[rank].clear();
  }
  return links;
}

void ServerSession::run(const json& request) {
  const auto found = find(request);
  OpenCase& c = *found->second;
  std::optional<RankResult> result;
  std::optional<json> end;
  std::string fault_text;
  try {
    if (!c.connected) throw UsageError("run.id: the case is not connected");
    c.runner->prepare(request_from_json(request));
    send({{"type", "ready"}});
    json go = receive(settings_.idle_limit);
    if (type_of(go) == "go") {
      result = run_loop(c, go);
      if (c.number.rank == 0) send({{"type", "ended"}});
    } else {
      end = std::move(go);
    }
  } catch (const Interrupted&) {
    throw;
  } catch (const measure::EndedEarly&) {  // the message that ended it is read next
  } catch (const std::exception& fault) {
    fault_text = fault.what();
    send(error_message(fault));  // ends the loops of the other ranks
  }
  // The client ends every run with one message. After a fault it has had its answer already.
  const std::chrono::milliseconds patience = fault_text.empty() ? settings_.idle_limit : fault_patience;
  if (!end) end = receive(std::min(settings_.idle_limit, patience));
  finish_run(found, *end, result, fault_text);
}

RankResult ServerSession::run_loop(OpenCase& c, const json& go) {
  measure::Watch watch(client_.socket.fd(),
                       stall_limit_of(go, c.description, c.number.rank, settings_.idle_limit));
  return c.runner->run(watch);
}

void ServerSession::examine(const json& request) {
  if (!settings_.examine) throw Unavailable("this server does not examine its machine");
  log_(fmt::format("{} examines this machine", client_.address));
  for (const json& part : parts_of(settings_.examine(Fields(request, "examine").at("request")))) send(part);
}

void ServerSession::finish_run(Cases::iterator open_case, const json& end,
                               const std::optional<RankResult>& result, std::string fault) {
  const std::string type = type_of(end);
  if (type == "bye") {
    left_ = true;
    return;
  }
  if (type != "finish" && type != "abort")
    throw PeerLost(fmt::format("protocol violation: it sent '{}' in a run", type));
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
  log_(fmt::format("{} {}: {}", client_.address, case_name(open_case->second->description), fault));
  close(open_case);
  if (!answered) send(type == "abort" ? json{{"type", "aborted"}} : error_message(Error(fault)));
}

void ServerSession::close(Cases::iterator open_case) {
  for (const std::string& token : open_case->second->tokens)
    if (!token.empty()) data_connections_.forget(token);
  cases_.erase(open_case);
}

ServerSession::Cases::iterator ServerSession::find(const json& request) {
  const std::uint64_t id = Fields(request, type_of(request)).number("id", 0, max_case_id);
  const auto found = cases_.find(id);
  if (found == cases_.end()) throw UsageError(fmt::format("{}.id: no case {} is open", type_of(request), id));
  return found;
}

// Idle is the visit, not one session of it: the client may be busy with another.
json ServerSession::receive_request() {
  const auto idle_until = [&] { return client_.visit->idle_until(settings_.idle_limit); };
  while (!wire::wait_for(client_.socket.fd(), POLLIN | POLLRDHUP, std::min(idle_until(), after(1s))))
    if (std::chrono::steady_clock::now() >= idle_until()) return receive(0ms);
  return receive(settings_.idle_limit);
}

json ServerSession::receive(std::chrono::milliseconds patience) {
  return receive_message(client_.socket, after(patience), "waiting for its next message");
}

void ServerSession::send(const json& message) {
  send_message(client_.socket, message, after(send_limit), fmt::format("answering '{}'", type_of(message)));
}

}  // namespace gdrbench::session
