#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "base/fields.hpp"
#include "base/records.hpp"
#include "gdrbench/error.hpp"
#include "session/data_connections.hpp"
#include "session/ranks.hpp"
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

// Bytes in the measured direction or directions; a round trip of reads brings data one way only.
std::uint64_t payload_moved(const Case& c, std::uint64_t iterations) {
  const bool both_ways = times_messages(c.suite) ? c.op != Op::read : c.direction == Direction::both;
  return iterations * c.size_bytes * (both_ways ? 2 : 1);
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
  void make_local_runner();
  std::vector<json> open_ranks();
  void connect_ranks(const std::vector<json>& opened);
  json dial_list(std::size_t rank, const std::vector<json>& opened) const;
  void connect_local(std::vector<measure::RankLink> links);
  void close() noexcept;

  void prepare(const RunRequest& request);
  void run_loops(const RunRequest& request, RankResult& mine);
  void run_local_loop(const RunRequest& request, RankResult& mine);
  void read_channels();
  void verify(const RunRequest& request, RunResult& out);
  [[noreturn]] void give_up(std::exception_ptr cause);

  Ranks ranks_;
  std::unique_ptr<measure::Runner> runner_;  // of the rank in this process
  std::vector<PathProof> proofs_;            // by rank
  bool open_ = false;
  bool ended_ = false;  // rank 0's loop, in the present run
};

RankedCase::RankedCase(std::vector<Place> places) : ranks_(std::move(places)), proofs_(ranks_.size()) {
  make_local_runner();
  try {
    connect_ranks(open_ranks());
  } catch (...) {
    close();
    throw;
  }
}

void RankedCase::make_local_runner() {
  if (!ranks_.local()) return;
  Rank& rank = ranks_[*ranks_.local()];
  try {
    runner_ = ranks_.lead().harness().make_runner(
        rank.c, {static_cast<std::uint32_t>(*ranks_.local()), static_cast<std::uint32_t>(ranks_.size())},
        ranks_.lead().payload());
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& fault) {
    ranks_.keep_local(fault);
    ranks_.throw_faults();
  }
}

std::vector<json> RankedCase::open_ranks() {
  open_ = true;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    json accept = json::array();
    for (std::size_t other = 0; other < ranks_.size(); ++other)
      if (ranks_.dials(other, i)) accept.push_back(other);
    ranks_.send(ranks_[i], {{"type", "open"},
                            {"id", ranks_[i].id},
                            {"rank", i},
                            {"ranks", ranks_.size()},
                            {"case", to_json(ranks_[i].c)},
                            {"accept", std::move(accept)}});
  }
  std::vector<json> opened = ranks_.answers("opened");
  if (ranks_.has_fault()) ranks_.throw_faults();
  return opened;
}

void RankedCase::connect_ranks(const std::vector<json>& opened) {
  std::vector<json> offers;
  for (std::size_t i = 0; i < ranks_.size(); ++i)
    offers.push_back(ranks_.is_local(i) ? runner_->offer() : object_of(opened[i], "offer", ranks_[i].name));
  std::vector<measure::RankLink> links(ranks_.size());
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    links[i].offer = offers[i];
    if (ranks_.local() && ranks_.dials(*ranks_.local(), i))
      links[i].connections = open_data_connections(
          ranks_[i].client->address(), token_of(opened[i], *ranks_.local(), ranks_[i].name),
          ranks_[i].c.queue_pairs, ranks_[i].client->options().connect_timeout);
  }
  for (std::size_t i = 0; i < ranks_.size(); ++i)
    ranks_.send(
        ranks_[i],
        {{"type", "connect"}, {"id", ranks_[i].id}, {"offers", offers}, {"dial", dial_list(i, opened)}});
  if (runner_) connect_local(std::move(links));
  const std::vector<json> connected = ranks_.answers("connected");
  // Of two ranks, a lost one is the other.
  if (ranks_.local() && ranks_.size() == 2 && ranks_[*ranks_.local()].fault &&
      ranks_[*ranks_.local()].fault->kind == ErrorKind::lost && !ranks_[1 - *ranks_.local()].fault)
    ranks_[1 - *ranks_.local()].fault = std::exchange(ranks_[*ranks_.local()].fault, std::nullopt);
  if (ranks_.has_fault()) ranks_.throw_faults();
  for (std::size_t i = 0; i < ranks_.size(); ++i)
    if (!ranks_.is_local(i)) proofs_[i] = proof_of(connected[i], ranks_[i].name);
}

// The data connections that this rank has to open.
json RankedCase::dial_list(std::size_t rank, const std::vector<json>& opened) const {
  json list = json::array();
  for (std::size_t other = 0; other < ranks_.size(); ++other) {
    if (ranks_.is_local(rank) || !ranks_.dials(rank, other)) continue;
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
    proofs_[*ranks_.local()] = runner_->describe();
  } catch (const Interrupted&) {
    throw;
  } catch (const json::exception& fault) {
    ranks_.keep(ranks_[*ranks_.local()],
                {ErrorKind::lost, "protocol violation: its offer: " + words_of(fault)});
  } catch (const std::exception& fault) {
    ranks_.keep_local(fault);
  }
}

void RankedCase::close() noexcept {
  if (!open_) return;
  open_ = false;
  ranks_.try_send_all({{"type", "close"}});
  runner_.reset();
}

RunResult RankedCase::run(const RunRequest& request) {
  if (!open_) throw Error(fmt::format("{}: the case was closed after a failure", case_name(ranks_[0].c)));
  request_from_json(to_json(request));  // throws UsageError before a server has to
  ranks_.clear_faults();
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
  if (ranks_.local()) out.ranks[*ranks_.local()] = std::move(mine);
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
    ranks_.send(rank, start);
  }
  std::exception_ptr mine;
  try {
    if (runner_) runner_->prepare(request);
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception&) {
    mine = std::current_exception();
  }
  ranks_.answers("ready");
  if (mine) std::rethrow_exception(mine);
  ranks_.throw_remote_fault();
  for (Rank& rank : ranks_) {
    json go = {{"type", "go"}};
    if (&rank == &ranks_[0]) go["stall_limit_ms"] = ranks_.lead().options().stall_limit.count();
    ranks_.send(rank, go);
  }
  ranks_.throw_remote_fault();
}

// Returns when rank 0's loop has ended, and the one in this process.
void RankedCase::run_loops(const RunRequest& request, RankResult& mine) {
  if (runner_) run_local_loop(request, mine);
  if (ranks_.is_local(0)) return read_channels();
  while (!ended_) {
    const Deadline look = std::min(request.deadline, after(1s));
    if (wire::wait_for(ranks_.channels_fd(), POLLIN, look))
      read_channels();
    else if (std::chrono::steady_clock::now() >= request.deadline)
      throw OutOfTime();
  }
}

void RankedCase::run_local_loop(const RunRequest& request, RankResult& mine) {
  const std::chrono::milliseconds limit =
      ranks_.is_local(0) ? ranks_.lead().options().stall_limit : no_stall_limit;
  measure::Watch watch(ranks_.channels_fd(), limit, request.deadline);
  try {
    mine = runner_->run(watch);
  } catch (const measure::EndedEarly&) {
    read_channels();
    if (ended_)
      throw Error(fmt::format("the run is over at {}, but messages are missing here", ranks_[0].name));
    throw;
  }
}

// In a run, before "finish", a server speaks only of a fault, or of the end of rank 0's loop, or is gone.
void RankedCase::read_channels() {
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    if (!rank.client || rank.fault || !rank.client->has_message()) continue;
    const std::optional<json> message = ranks_.receive(rank, rank.client->options().reply_timeout);
    if (!message) continue;
    if (i == 0 && type_of(*message) == "ended")
      ended_ = true;
    else
      ranks_.keep(rank, {ErrorKind::lost,
                         fmt::format("protocol violation: it sent '{}' in a run", type_of(*message))});
  }
  ranks_.throw_remote_fault();
}

// All ranks verify at the same time.
void RankedCase::verify(const RunRequest& request, RunResult& out) {
  ranks_.send_all({{"type", "finish"}});
  if (runner_) {
    try {
      if (const std::string wrong = runner_->verify(); !wrong.empty())
        ranks_.keep(ranks_[*ranks_.local()], {ErrorKind::failed, wrong});
      proofs_[*ranks_.local()] = runner_->describe();
    } catch (const std::exception& fault) {
      ranks_.keep_local(fault);
    }
  }
  const std::vector<json> done = ranks_.answers("done");
  bool broken = false, lost = false;
  for (const Rank& rank : ranks_) {
    broken = broken || (rank.client && rank.fault);
    lost = lost || (rank.client && rank.fault && rank.fault->is_loss());
  }
  if (!broken) {
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (ranks_.is_local(i)) continue;
      if (const std::string wrong = verdict_of(done[i], ranks_[i].name); !wrong.empty())
        ranks_.keep(ranks_[i], {ErrorKind::failed, wrong, true});
    }
  }
  if (ranks_.has_fault()) {
    if (broken) close();
    throw_as(lost ? ErrorKind::lost : ErrorKind::failed, ranks_.account());
  }
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (ranks_.is_local(i)) continue;
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
    ranks_.try_send_all({{"type", "abort"}, {"text", fault.what()}});
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
    if (ranks_.local()) ranks_.keep_local(fault);
  }
  // Another rank may know more of a failure than the one that noticed it here, or that only saw its queue
  // pair flushed.
  bool cause_is_known = false, may_learn_more = false;
  for (const Rank& rank : ranks_) {
    cause_is_known = cause_is_known || (rank.client && rank.fault && !rank.fault->is_flush());
    may_learn_more = may_learn_more || (rank.client && !rank.fault);
  }
  if (!out_of_time && !cause_is_known && may_learn_more)
    wire::wait_for(ranks_.channels_fd(), POLLIN, after(account_patience));
  ranks_.abort(why, abort_patience);
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
  if (causes == 0) throw Error(fmt::format("{}: {}", case_name(ranks_[0].c), why));
  // That nothing moved is a loss, too, and is seen here or at rank 0, wherever that is.
  if (causes == 1 && only->fault->kind == ErrorKind::lost && (!only->client || only == &ranks_[0]))
    lost = true;
  throw_as(lost ? ErrorKind::lost : ErrorKind::failed, ranks_.account());
}

}  // namespace

std::unique_ptr<OpenCase> open_case(std::vector<Place> places) {
  return std::make_unique<RankedCase>(std::move(places));
}

std::unique_ptr<OpenCase> open_case(std::shared_ptr<Client> client, const Case& initiator_case,
                                    const Case& responder_case) {
  return open_case({{nullptr, initiator_case}, {std::move(client), responder_case}});
}

}  // namespace gdrbench::session
