#include "session/ranks.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "gdrbench/error.hpp"

namespace gdrbench::session {
namespace {

using nlohmann::json;

constexpr std::size_t max_accounts = 4;

std::string without_prefix(const std::string& text, const std::string& prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

bool is_loopback(const std::string& host) {
  return host.starts_with("127.") || host == "::1";
}

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

}  // namespace

bool Fault::is_flush() const {
  return text.find("IBV_WC_WR_FLUSH_ERR") != std::string::npos;
}

Ranks::Ranks(std::vector<Place> places) {
  if (places.size() < 2) throw UsageError("a case needs at least two ranks");
  const bool has_server =
      std::any_of(places.begin(), places.end(), [](const Place& place) { return place.client != nullptr; });
  if (!has_server) throw UsageError("a case needs a rank at a server");
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
}

bool Ranks::dials(std::size_t from, std::size_t to) const {
  if (from == to || uses_verbs(ranks_[0].c.path)) return false;
  if (is_local(from) || is_local(to)) return is_local(from);
  const bool near_from = is_loopback(ranks_[from].client->numeric_address().host);
  const bool near_to = is_loopback(ranks_[to].client->numeric_address().host);
  return near_from == near_to ? from < to : near_from;
}

void Ranks::send(Rank& rank, const json& message) {
  if (!rank.client || rank.fault) return;
  try {
    rank.client->send(message, rank.name);
  } catch (const PeerLost& fault) {
    keep(rank, {ErrorKind::lost, fault.what()});
  }
}

void Ranks::send_all(const json& message) {
  for (Rank& rank : ranks_) send(rank, message);
}

std::optional<json> Ranks::receive(Rank& rank, std::chrono::milliseconds patience) {
  try {
    json message = rank.client->receive(rank.name, patience);
    if (type_of(message) != "error") return message;
    keep(rank, {kind_of(message), text_of(message, "text"), true});
  } catch (const PeerLost& fault) {
    keep(rank, {ErrorKind::lost, fault.what()});
  }
  return std::nullopt;
}

std::vector<json> Ranks::answers(std::string_view type) {
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

void Ranks::abort(const std::string& why, std::chrono::milliseconds patience) {
  std::vector<Rank*> due;
  for (Rank& rank : ranks_) {
    if (!rank.client || rank.client->lost()) continue;
    const bool answered = rank.fault.has_value();
    if (answered)
      rank.client->try_send({{"type", "abort"}, {"text", why}});
    else
      send(rank, {{"type", "abort"}, {"text", why}});
    if (!answered && !rank.fault) due.push_back(&rank);
  }
  for (Rank* rank : due) {
    std::optional<json> answer;
    do answer = receive(*rank, patience);
    while (answer && (type_of(*answer) == "ready" || type_of(*answer) == "ended"));
  }
}

void Ranks::try_send_all(json message) {
  for (const Rank& rank : ranks_) {
    if (!rank.client) continue;
    message["id"] = rank.id;
    rank.client->try_send(message);
  }
}

void Ranks::clear_faults() {
  for (Rank& rank : ranks_) rank.fault.reset();
}

// Texts may begin with the names that the account begins with.
void Ranks::keep(Rank& rank, Fault fault) const {
  fault.text = without_prefix(fault.text, rank.name + ": ");
  fault.text = without_prefix(fault.text, case_name(rank.c) + ": ");
  rank.fault = std::move(fault);
}

bool Ranks::has_fault() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.fault.has_value(); });
}

void Ranks::throw_remote_fault() const {
  if (has_fault()) throw RemoteFault();
}

void Ranks::throw_faults() const {
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

std::string Ranks::account() const {
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

}  // namespace gdrbench::session
