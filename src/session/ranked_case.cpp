#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <optional>
#include <utility>

#include "base/fields.hpp"
#include "base/records.hpp"
#include "base/system.hpp"
#include "gdrbench/error.hpp"
#include "session/channel.hpp"
#include "session/client.hpp"
#include "session/data_connections.hpp"
#include "session/replies.hpp"

namespace gdrbench::session {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

// How long a failed run waits for what other ranks have to say of the same failure, and then for the end of
// their loops.
constexpr auto account_patience = 2s;
constexpr auto abort_patience = 5s;
// Rank 0 has a limit on standing still; this is for others, which learn from it that the run is over.
constexpr auto no_stall_limit = std::chrono::hours(24);
constexpr std::size_t max_accounts = 4;

/// What a rank says, or what is known, of a failure.
struct Fault {
  ErrorKind kind;
  std::string text;
  bool said = false;  ///< by its server, in an "error" message in place of the answer that was due
  bool is_loss() const { return kind == ErrorKind::lost && !said; }
  bool is_flush() const { return text.find("IBV_WC_WR_FLUSH_ERR") != std::string::npos; }
};

/// Thrown where a remote rank's fault, kept with the rank, ends a run.
class RemoteFault : public Error {
 public:
  RemoteFault() : Error("another rank failed") {}
};

struct Rank {
  std::shared_ptr<Client> client;  ///< null: this process
  Case c;
  std::string name;  ///< "initiator", "responder node-b:7471"
  std::uint64_t id = 0;
  std::optional<Fault> fault{};  ///< in the present step
};

// Bytes in the measured direction or directions; a round trip of reads brings data one way only.
std::uint64_t payload_moved(const Case& c, std::uint64_t iterations) {
  const bool both_ways = times_messages(c.suite) ? c.op != Op::read : c.direction == Direction::both;
  return iterations * c.size_bytes * (both_ways ? 2 : 1);
}

std::string without_prefix(const std::string& text, const std::string& prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

bool is_loopback(const std::string& host) {
  return host.starts_with("127.") || host == "::1";
}

/// Readable when any of the control channels is.
FileDescriptor watch_channels(const std::vector<Rank>& ranks) {
  FileDescriptor all(::epoll_create1(EPOLL_CLOEXEC));
  if (!all) throw SystemError(errno, "creating an epoll instance for control channels");
  for (const Rank& rank : ranks) {
    if (!rank.client) continue;
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP;
    if (::epoll_ctl(all.get(), EPOLL_CTL_ADD, rank.client->control_fd(), &event) != 0)
      throw SystemError(errno, "adding a control channel to an epoll instance");
  }
  return all;
}

/// A case over ranks of which all but one at most are at servers, told what to do by this client. To every
/// request each server gives one answer, all of which are read whatever happens, so that the control channels
/// stay in step and other cases stay usable.
class RankedCase : public OpenCase {
 public:
  explicit RankedCase(std::vector<Place> places);
  ~RankedCase() override { close(); }
  RunResult run(const RunRequest& request) override;
  const std::vector<PathProof>& proofs() const override { return proofs_; }

 private:
  bool is_local(std::size_t rank) const { return !ranks_[rank].client; }
  bool dials(std::size_t from, std::size_t to) const;
  void make_local_runner();
  std::vector<json> open_ranks();
  void connect_ranks(const std::vector<json>& opened);
  json dial_list(std::size_t rank, const std::vector<json>& opened) const;
  void connect_local(std::vector<measure::RankLink> links);
  void close() noexcept;

  void prepare(const RunRequest& request);
  void run_loops(const RunRequest& request, RankResult& mine);
  void run_local_loop(const RunRequest& request, RankResult& mine);
  void hear_channels();
  void verify(const RunRequest& request, RunResult& out);
  [[noreturn]] void give_up(std::exception_ptr cause);
  void abort_ranks(const std::string& why);

  void send(Rank& rank, const json& message);
  std::optional<json> receive(Rank& rank, std::chrono::milliseconds patience);
  std::vector<json> answers(std::string_view type);
  void keep(Rank& rank, Fault fault) const;
  void keep_local(const std::exception& error);
  bool has_fault() const;
  void throw_remote_fault() const;
  [[noreturn]] void throw_faults() const;
  /// What all ranks know of a failure, in one text; flushes are left out beside a cause.
  std::string account() const;

  std::vector<Rank> ranks_;
  std::optional<std::size_t> local_;         // the rank in this process
  std::unique_ptr<measure::Runner> runner_;  // of that rank
  Client* lead_ = nullptr;                   // whose options hold where one session's must
  FileDescriptor channels_;
  std::vector<PathProof> proofs_;  // by rank
  bool open_ = false;
  bool ended_ = false;  // rank 0's loop, in the present run
};

RankedCase::RankedCase(std::vector<Place> places) : proofs_(places.size()) {
  if (places.size() < 2) throw UsageError("a case needs at least two ranks");
  const auto count = static_cast<std::uint32_t>(places.size());
  for (Place& place : places) {
    const auto number = static_cast<std::uint32_t>(ranks_.size());
    std::string name = role_name(place.c, {number, count});
    if (place.client) {
      name += " " + place.client->name();
      for (const Rank& other : ranks_)
        if (other.client == place.client)
          throw UsageError(
              fmt::format("{} and {} are to be run by one session, which runs one rank at a time; join "
                          "another session to it",
                          other.name, name));
      if (lead_ == nullptr) lead_ = place.client.get();
    } else {
      if (local_) throw UsageError("a case can have one rank in this process, not two");
      local_ = number;
    }
    const std::uint64_t id = place.client ? place.client->next_id() : 0;
    ranks_.push_back({std::move(place.client), std::move(place.c), std::move(name), id});
  }
  channels_ = watch_channels(ranks_);
  make_local_runner();
  try {
    connect_ranks(open_ranks());
  } catch (...) {
    close();
    throw;
  }
}

// Which of two ranks opens the TCP connections between them, to the port of the other's server: one in this
// process, which has no port, else the lower. A server that this client reaches by a loopback address, though
// not the other one, opens them itself: the other could not reach it so.
bool RankedCase::dials(std::size_t from, std::size_t to) const {
  if (from == to || uses_verbs(ranks_[0].c.path)) return false;
  if (is_local(from) || is_local(to)) return is_local(from);
  const bool near_from = is_loopback(ranks_[from].client->numeric_address().host);
  const bool near_to = is_loopback(ranks_[to].client->numeric_address().host);
  return near_from == near_to ? from < to : near_from;
}

void RankedCase::make_local_runner() {
  if (!local_) return;
  Rank& rank = ranks_[*local_];
  try {
    runner_ = lead_->harness().make_runner(
        rank.c, {static_cast<std::uint32_t>(*local_), static_cast<std::uint32_t>(ranks_.size())},
        lead_->payload());
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& fault) {
    keep_local(fault);
    throw_faults();
  }
}

std::vector<json> RankedCase::open_ranks() {
  open_ = true;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    json accept = json::array();
    for (std::size_t other = 0; other < ranks_.size(); ++other)
      if (dials(other, i)) accept.push_back(other);
    send(ranks_[i], {{"type", "open"},
                     {"id", ranks_[i].id},
                     {"rank", i},
                     {"ranks", ranks_.size()},
                     {"case", to_json(ranks_[i].c)},
                     {"accept", std::move(accept)}});
  }
  std::vector<json> opened = answers("opened");
  if (has_fault()) throw_faults();
  return opened;
}

void RankedCase::connect_ranks(const std::vector<json>& opened) {
  std::vector<json> offers;
  for (std::size_t i = 0; i < ranks_.size(); ++i)
    offers.push_back(is_local(i) ? runner_->offer() : object_of(opened[i], "offer", ranks_[i].name));
  std::vector<measure::RankLink> links(ranks_.size());
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    links[i].offer = offers[i];
    if (local_ && dials(*local_, i))
      links[i].connections =
          open_data_connections(ranks_[i].client->address(), token_of(opened[i], *local_, ranks_[i].name),
                                ranks_[i].c.queue_pairs, ranks_[i].client->options().connect_timeout);
  }
  for (std::size_t i = 0; i < ranks_.size(); ++i)
    send(ranks_[i],
         {{"type", "connect"}, {"id", ranks_[i].id}, {"offers", offers}, {"dial", dial_list(i, opened)}});
  if (runner_) connect_local(std::move(links));
  const std::vector<json> connected = answers("connected");
  // Of two ranks, a lost one is the other.
  if (local_ && ranks_.size() == 2 && ranks_[*local_].fault &&
      ranks_[*local_].fault->kind == ErrorKind::lost && !ranks_[1 - *local_].fault)
    ranks_[1 - *local_].fault = std::exchange(ranks_[*local_].fault, std::nullopt);
  if (has_fault()) throw_faults();
  for (std::size_t i = 0; i < ranks_.size(); ++i)
    if (!is_local(i)) proofs_[i] = proof_of(connected[i], ranks_[i].name);
}

// The data connections that this rank has to open.
json RankedCase::dial_list(std::size_t rank, const std::vector<json>& opened) const {
  json list = json::array();
  for (std::size_t other = 0; other < ranks_.size(); ++other) {
    if (is_local(rank) || !dials(rank, other)) continue;
    const wire::Address server = ranks_[other].client->numeric_address();
    list.push_back({{"rank", other},
                    {"host", server.host},
                    {"port", server.port},
                    {"token", token_of(opened[other], rank, ranks_[other].name)}});
  }
  return list;
}

void RankedCase::connect_local(std::vector<measure::RankLink> links) {
  try {
    runner_->connect(std::move(links));
    proofs_[*local_] = runner_->describe();
  } catch (const Interrupted&) {
    throw;
  } catch (const json::exception& fault) {
    keep(ranks_[*local_], {ErrorKind::lost, "protocol violation: its offer: " + words_of(fault)});
  } catch (const std::exception& fault) {
    keep_local(fault);
  }
}

void RankedCase::close() noexcept {
  if (!open_) return;
  open_ = false;
  for (const Rank& rank : ranks_)
    if (rank.client) rank.client->try_send({{"type", "close"}, {"id", rank.id}});
  runner_.reset();
}

RunResult RankedCase::run(const RunRequest& request) {
  if (!open_) throw Error(fmt::format("{}: the case was closed after a failure", case_name(ranks_[0].c)));
  request_from_json(to_json(request));  // throws UsageError before a server has to
  for (Rank& rank : ranks_) rank.fault.reset();
  ended_ = false;

  RunResult out;
  RankResult mine;
  try {
    prepare(request);
    out.started = utc_now();
    run_loops(request, mine);
  } catch (const std::exception&) {
    give_up(std::current_exception());
  }
  out.ranks.resize(ranks_.size());
  if (local_) out.ranks[*local_] = std::move(mine);
  verify(request, out);
  out.iterations = request.iterations;
  out.elapsed_s = out.ranks[0].elapsed_s;
  out.payload_bytes = payload_moved(ranks_[0].c, request.iterations);
  out.verified = true;
  return out;
}

// Returns when all ranks are prepared, and those at servers have been told so.
void RankedCase::prepare(const RunRequest& request) {
  json start = to_json(request);
  start["type"] = "run";
  for (Rank& rank : ranks_) {
    start["id"] = rank.id;
    send(rank, start);
  }
  std::exception_ptr mine;
  try {
    if (runner_) runner_->prepare(request);
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception&) {
    mine = std::current_exception();
  }
  answers("ready");
  if (mine) std::rethrow_exception(mine);
  throw_remote_fault();
  for (Rank& rank : ranks_) {
    json go = {{"type", "go"}};
    if (&rank == &ranks_.front()) go["stall_limit_ms"] = lead_->options().stall_limit.count();
    send(rank, go);
  }
  throw_remote_fault();
}

// Returns when rank 0's loop has ended, and the one in this process.
void RankedCase::run_loops(const RunRequest& request, RankResult& mine) {
  if (runner_) run_local_loop(request, mine);
  if (is_local(0)) return hear_channels();
  while (!ended_) {
    const Deadline look = std::min(request.deadline, after(1s));
    if (wire::wait_for(channels_.get(), POLLIN, look))
      hear_channels();
    else if (std::chrono::steady_clock::now() >= request.deadline)
      throw OutOfTime();
  }
}

void RankedCase::run_local_loop(const RunRequest& request, RankResult& mine) {
  const std::chrono::milliseconds limit = is_local(0) ? lead_->options().stall_limit : no_stall_limit;
  measure::Watch watch(channels_.get(), limit, request.deadline);
  try {
    mine = runner_->run(watch);
  } catch (const measure::EndedEarly&) {
    hear_channels();
    if (ended_)
      throw Error(fmt::format("the run is over at {}, but messages are missing here", ranks_[0].name));
    throw;
  }
}

// In a run, before "finish", a server speaks only of a fault, or of the end of rank 0's loop, or is gone.
void RankedCase::hear_channels() {
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    if (!rank.client || rank.fault || !rank.client->has_message()) continue;
    const std::optional<json> message = receive(rank, rank.client->options().reply_timeout);
    if (!message) continue;
    if (i == 0 && type_of(*message) == "ended")
      ended_ = true;
    else
      keep(rank,
           {ErrorKind::lost, fmt::format("protocol violation: it sent '{}' in a run", type_of(*message))});
  }
  throw_remote_fault();
}

// All ranks verify at the same time.
void RankedCase::verify(const RunRequest& request, RunResult& out) {
  for (Rank& rank : ranks_) send(rank, {{"type", "finish"}});
  if (runner_) {
    try {
      if (const std::string wrong = runner_->verify(); !wrong.empty())
        keep(ranks_[*local_], {ErrorKind::failed, wrong});
      proofs_[*local_] = runner_->describe();
    } catch (const std::exception& fault) {
      keep_local(fault);
    }
  }
  const std::vector<json> done = answers("done");
  bool broken = false, lost = false;
  for (const Rank& rank : ranks_) {
    broken = broken || (rank.client && rank.fault);
    lost = lost || (rank.client && rank.fault && rank.fault->is_loss());
  }
  if (!broken) {
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (is_local(i)) continue;
      if (const std::string wrong = verdict_of(done[i], ranks_[i].name); !wrong.empty())
        keep(ranks_[i], {ErrorKind::failed, wrong, true});
    }
  }
  if (has_fault()) {
    if (broken) close();
    throw_as(lost ? ErrorKind::lost : ErrorKind::failed, account());
  }
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (is_local(i)) continue;
    proofs_[i] = proof_of(done[i], ranks_[i].name);
    out.ranks[i] = result_of(done[i], ranks_[i].c, request, i, ranks_[i].name);
  }
}

void RankedCase::give_up(std::exception_ptr cause) {
  std::string why = "another rank failed";
  bool out_of_time = false;
  try {
    std::rethrow_exception(std::move(cause));
  } catch (const Interrupted& fault) {
    for (const Rank& rank : ranks_)
      if (rank.client) rank.client->try_send({{"type", "abort"}, {"text", fault.what()}});
    close();
    throw;
  } catch (const RemoteFault&) {
    for (const Rank& rank : ranks_)
      if (rank.fault) why = rank.name + ": " + rank.fault->text;
  } catch (const OutOfTime& fault) {
    out_of_time = true;
    why = fault.what();
  } catch (const std::exception& fault) {
    why = fault.what();
    if (local_) keep_local(fault);
  }
  // Another rank may know more of a failure than the one that noticed it here, or that only saw its queue
  // pair flushed.
  bool cause_is_known = false, may_learn_more = false;
  for (const Rank& rank : ranks_) {
    cause_is_known = cause_is_known || (rank.client && rank.fault && !rank.fault->is_flush());
    may_learn_more = may_learn_more || (rank.client && !rank.fault);
  }
  if (!out_of_time && !cause_is_known && may_learn_more)
    wire::wait_for(channels_.get(), POLLIN, after(account_patience));
  abort_ranks(why);
  close();

  const Rank* only = nullptr;
  std::size_t causes = 0;
  bool lost = false;
  for (const Rank& rank : ranks_) {
    if (!rank.fault) continue;
    lost = lost || (rank.client && rank.fault->is_loss());
    only = &rank;
    ++causes;
  }
  if (out_of_time && !lost) throw OutOfTime();
  // That nothing moved is a loss, too, and is seen here or at rank 0, wherever that is.
  if (causes == 1 && only->fault->kind == ErrorKind::lost && (!only->client || only == &ranks_.front()))
    lost = true;
  throw_as(lost ? ErrorKind::lost : ErrorKind::failed, account());
}

// A server that has told of its fault says no more; every other one gives one last answer.
void RankedCase::abort_ranks(const std::string& why) {
  std::vector<Rank*> due;
  for (Rank& rank : ranks_) {
    if (!rank.client || rank.client->lost()) continue;
    const bool has_spoken = rank.fault.has_value();
    if (has_spoken)
      rank.client->try_send({{"type", "abort"}, {"text", why}});
    else
      send(rank, {{"type", "abort"}, {"text", why}});
    if (!has_spoken && !rank.fault) due.push_back(&rank);
  }
  for (Rank* rank : due) {
    std::optional<json> answer;
    do answer = receive(*rank, abort_patience);
    while (answer && (type_of(*answer) == "ready" || type_of(*answer) == "ended"));
  }
}

// Nothing for the rank in this process; a server that cannot be reached is kept as a fault.
void RankedCase::send(Rank& rank, const json& message) {
  if (!rank.client || rank.fault) return;
  try {
    rank.client->send(message, rank.name);
  } catch (const PeerLost& fault) {
    keep(rank, {ErrorKind::lost, fault.what()});
  }
}

// Nothing where the server tells of a fault, or is lost: that is kept with the rank.
std::optional<json> RankedCase::receive(Rank& rank, std::chrono::milliseconds patience) {
  try {
    json message = rank.client->receive(rank.name, patience);
    if (type_of(message) != "error") return message;
    keep(rank, {kind_of(message), text_of(message, "text"), true});
  } catch (const PeerLost& fault) {
    keep(rank, {ErrorKind::lost, fault.what()});
  }
  return std::nullopt;
}

// By rank; that of a rank with a fault is null.
std::vector<json> RankedCase::answers(std::string_view type) {
  std::vector<json> all(ranks_.size());
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    if (!rank.client || rank.fault) continue;
    const std::optional<json> answer = receive(rank, rank.client->options().reply_timeout);
    if (!answer) continue;
    if (type_of(*answer) == type)
      all[i] = *answer;
    else
      keep(rank, {ErrorKind::lost, fmt::format("protocol violation: it sent '{}' where '{}' was due",
                                               type_of(*answer), type)});
  }
  return all;
}

// Texts may begin with the names that the account begins with.
void RankedCase::keep(Rank& rank, Fault fault) const {
  fault.text = without_prefix(fault.text, rank.name + ": ");
  fault.text = without_prefix(fault.text, case_name(rank.c) + ": ");
  rank.fault = std::move(fault);
}

void RankedCase::keep_local(const std::exception& error) {
  keep(ranks_[*local_], {kind_of(error), error.what()});
}

bool RankedCase::has_fault() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.fault.has_value(); });
}

void RankedCase::throw_remote_fault() const {
  if (has_fault()) throw RemoteFault();
}

// Before a case is connected: the reasons of all ranks, as the kind of error that the first of them is.
void RankedCase::throw_faults() const {
  std::optional<ErrorKind> kind;
  std::string text;
  for (const Rank& rank : ranks_) {
    if (!rank.fault) continue;
    const bool theirs = rank.fault->kind == ErrorKind::lost && rank.fault->said;
    if (!kind) kind = theirs ? ErrorKind::failed : rank.fault->kind;
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", rank.name, rank.fault->text);
  }
  throw_as(kind.value_or(ErrorKind::failed), text);
}

// A lost rank comes first: what others saw follows from it.
std::string RankedCase::account() const {
  const auto tells = [](const Rank& rank) { return rank.fault && !rank.fault->is_flush(); };
  const bool has_cause = std::any_of(ranks_.begin(), ranks_.end(), tells);
  std::vector<const Rank*> shown;
  for (const Rank& rank : ranks_)
    if (rank.fault && (!has_cause || tells(rank))) shown.push_back(&rank);
  const auto others = std::stable_partition(
      shown.begin(), shown.end(), [](const Rank* rank) { return rank->fault->is_loss() && rank->client; });
  const auto lost = static_cast<std::size_t>(others - shown.begin());
  std::string text = case_name(ranks_[0].c);
  for (std::size_t i = 0; i < std::min(shown.size(), max_accounts); ++i)
    text += fmt::format("{}{}{}: {}", i == 0 ? ": " : "; ", i == lost && i > 0 ? "before that, the " : "",
                        shown[i]->name, shown[i]->fault->text);
  if (shown.size() > max_accounts) text += fmt::format("; {} more ranks failed", shown.size() - max_accounts);
  return text;
}

}  // namespace

std::unique_ptr<OpenCase> open_case(std::vector<Place> places) {
  const bool has_server =
      std::any_of(places.begin(), places.end(), [](const Place& p) { return p.client != nullptr; });
  if (!has_server) throw UsageError("a case needs a rank at a server");
  return std::make_unique<RankedCase>(std::move(places));
}

std::unique_ptr<OpenCase> open_case(std::shared_ptr<Client> client, const Case& initiator_case,
                                    const Case& responder_case) {
  return open_case({{nullptr, initiator_case}, {std::move(client), responder_case}});
}

}  // namespace gdrbench::session
