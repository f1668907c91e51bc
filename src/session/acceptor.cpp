#include "session/acceptor.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <utility>

#include "base/error_text.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/interrupt.hpp"
#include "session/channel.hpp"
#include "session/handshake.hpp"

namespace gdrbench::session {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr std::size_t max_pending = 16;  // beside one for each session, which may open data connections
constexpr std::size_t max_sessions = 64;
constexpr auto handshake_limit = 5s;
// A client that just left, or was killed, still has its memory freed: the next one waits so long before
// "busy".
constexpr auto busy_grace = 2s;
constexpr auto check_interval = 100ms;

}  // namespace

void Log::operator()(const std::string& line) {
  const std::lock_guard lock(mutex_);
  if (write_) write_(printable(line));
}

Acceptor::Acceptor(wire::Listener& listener, std::string key, BeginVisit begin_visit,
                   DataConnections& data_connections, Log& log)
    : listener_(listener),
      key_(std::move(key)),
      begin_visit_(std::move(begin_visit)),
      data_connections_(data_connections),
      log_(log) {}

Acceptor::~Acceptor() {
  end();
}

void Acceptor::start(int visits) {
  ending_ = false;
  counts_visits_ = visits > 0;
  visits_left_ = visits;
  thread_ = std::thread([this] { accept_connections(); });
}

void Acceptor::end() {
  ending_ = true;
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(mutex_);
  waiting_ = {};
  visit_.reset();
  sessions_.clear();
}

std::optional<Acceptor::Client> Acceptor::next() {
  std::unique_lock lock(mutex_);
  while (waiting_.empty()) {
    if (is_ending() || interrupted() || (counts_visits_ && visits_left_ == 0 && !visit_)) return std::nullopt;
    changed_.wait_for(lock, check_interval);
  }
  Client client = std::move(waiting_.front());
  waiting_.pop();
  return client;
}

void Acceptor::leave(const Client& client) {
  const std::lock_guard lock(mutex_);
  sessions_.erase(client.socket.fd());
  if (sessions_.empty()) visit_.reset();
  changed_.notify_all();
}

void Acceptor::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  for (const int session : sessions_) ::shutdown(session, SHUT_RDWR);
  changed_.notify_all();
}

void Acceptor::accept_connections() {
  while (!is_ending() && !interrupted()) {
    wire::Socket socket = accept_one();
    reap(false);
    if (!socket) continue;
    std::string address = socket.remote_address();
    const std::lock_guard lock(mutex_);
    if (pending_.size() >= max_pending + sessions_.size()) {
      log_(fmt::format("{} refused: {} others are in their handshake", address, pending_.size()));
      continue;
    }
    Pending& pending = pending_.emplace_back();
    pending.socket = std::move(socket);
    pending.address = std::move(address);
    try {
      pending.thread = std::thread([this, &pending] { greet(pending); });
    } catch (const std::system_error& fault) {
      log_(fmt::format("{} refused: starting a thread: {}", pending.address, fault.what()));
      pending_.pop_back();
    }
  }
  reap(true);
}

// An empty socket when nobody came in time, or when a connection cannot be had, which each cause says once.
wire::Socket Acceptor::accept_one() {
  try {
    return listener_.accept(after(check_interval));
  } catch (const SystemError& fault) {
    if (accept_faults_.insert(fault.code()).second) log_(fault.what());
    return {};
  }
}

void Acceptor::reap(bool all) {
  std::list<Pending> gone;
  {
    const std::lock_guard lock(mutex_);
    for (auto p = pending_.begin(); p != pending_.end();) {
      const auto here = p++;
      if (all && here->socket) ::shutdown(here->socket.fd(), SHUT_RDWR);
      if (all || here->done) gone.splice(gone.end(), pending_, here);
    }
  }
  for (Pending& pending : gone) pending.thread.join();
}

void Acceptor::greet(Pending& pending) {
  try {
    const Deadline deadline = after(handshake_limit);
    const json hello = receive_message(pending.socket, deadline, "waiting for its greeting");
    if (text_of(hello, "kind") == "data")
      take_data_connection(pending, hello, deadline);
    else
      admit(pending, hello, deadline);
  } catch (const Interrupted&) {  // the server ends
  } catch (const std::exception& fault) {
    if (!is_ending()) log_(fmt::format("{} refused: {}", pending.address, fault.what()));
  }
  const std::lock_guard lock(mutex_);
  pending.socket = {};
  pending.done = true;
}

void Acceptor::take_data_connection(Pending& pending, const json& hello, Deadline deadline) {
  const std::string token = text_of(hello, "token");
  const auto index = hello.find("connection");
  const bool known = index != hello.end() && index->is_number_unsigned() &&
                     data_connections_.claim(token, index->get<std::uint64_t>());
  if (!known) {
    const Error refusal("no open case has this token and waits for this connection");
    send_message(pending.socket, error_message(refusal), deadline, "refusing a data connection");
    throw Error(fmt::format("data connection: {}", refusal.what()));
  }
  // Before the hand-over: from then on the socket belongs to the session's thread and carries payload.
  send_message(pending.socket, {{"type", "accepted"}}, deadline, "accepting a data connection");
  const std::lock_guard lock(mutex_);  // reap() may look at the socket
  data_connections_.deliver(token, index->get<std::uint64_t>(), std::move(pending.socket));
}

void Acceptor::admit(Pending& pending, const json& hello, Deadline deadline) {
  greet_client(pending.socket, hello, key_, deadline);
  keep_alive(pending.socket);
  if (!text_of(hello, "visit").empty()) return join(pending, hello, deadline);

  std::unique_lock lock(mutex_);
  const Deadline patience = after(busy_grace);
  while (visit_ && !is_ending() && !interrupted() && std::chrono::steady_clock::now() < patience)
    changed_.wait_for(lock, check_interval);
  if (is_ending() || interrupted() || (counts_visits_ && visits_left_ == 0 && !visit_)) return;
  if (visit_) {
    const Error busy(fmt::format("busy, served: {} since {}", visit_->address, visit_->since));
    lock.unlock();
    send_message(pending.socket, error_message(busy), deadline, "refusing");
    throw busy;
  }
  if (counts_visits_) --visits_left_;
  visit_ = begin_visit_(pending.address);
  log_(fmt::format("{} connected (gdrbench {})", pending.address, text_of(hello, "version")));
  hand_over(pending, false);
}

void Acceptor::join(Pending& pending, const json& hello, Deadline deadline) {
  std::unique_lock lock(mutex_);
  if (is_ending() || interrupted()) return;
  std::string refusal;
  if (!visit_ || !same_secret(visit_->token, text_of(hello, "visit")))
    refusal = "the visit that this session was to join is over";
  else if (sessions_.size() >= max_sessions)
    refusal = fmt::format("this client has {} sessions, more than which a server does not serve at once",
                          sessions_.size());
  if (!refusal.empty()) {
    lock.unlock();
    const Error error(refusal);
    send_message(pending.socket, error_message(error), deadline, "refusing");
    throw error;
  }
  log_(fmt::format("{} connected, session {} of {}", pending.address, sessions_.size() + 1, visit_->address));
  hand_over(pending, true);
}

void Acceptor::hand_over(Pending& pending, bool joined) {
  sessions_.insert(pending.socket.fd());
  waiting_.push({std::move(pending.socket), pending.address, visit_, joined});
  changed_.notify_all();
}

}  // namespace gdrbench::session
