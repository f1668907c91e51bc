#include "session/acceptor.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <utility>

#include "gdrbench/error.hpp"
#include "gdrbench/interrupt.hpp"
#include "session/frame.hpp"
#include "session/handshake.hpp"
#include "session/message.hpp"

namespace gdrbench::session {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr std::size_t most_strangers = 16;
constexpr auto handshake_limit = 5s;
// A client that just left, or was killed, still has its memory freed: the next one waits so long before
// "busy".
constexpr auto busy_grace = 2s;
constexpr auto check_interval = 100ms;

}  // namespace

Acceptor::Acceptor(wire::Listener& listener, std::string key, LaneDesk& lanes, Log& log)
    : listener_(listener), key_(std::move(key)), lanes_(lanes), log_(log) {}

Acceptor::~Acceptor() {
  end();
}

void Acceptor::start() {
  ending_ = false;
  thread_ = std::thread([this] { accept_connections(); });
}

void Acceptor::end() {
  ending_ = true;
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(mutex_);
  waiting_.reset();
  served_.reset();
}

std::optional<Acceptor::Client> Acceptor::next() {
  std::unique_lock lock(mutex_);
  while (!waiting_) {
    if (is_ending() || interrupted()) return std::nullopt;
    changed_.wait_for(lock, check_interval);
  }
  return std::exchange(waiting_, std::nullopt);
}

void Acceptor::release() {
  const std::lock_guard lock(mutex_);
  served_.reset();
  changed_.notify_all();
}

void Acceptor::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  if (served_) ::shutdown(served_->fd, SHUT_RDWR);
  changed_.notify_all();
}

void Acceptor::accept_connections() {
  while (!is_ending() && !interrupted()) {
    wire::Socket socket = accept_one();
    reap(false);
    if (!socket) continue;
    std::string address = socket.remote_address();
    const std::lock_guard lock(mutex_);
    if (strangers_.size() >= most_strangers) {
      log_(fmt::format("{} refused: {} others are in their handshake", address, most_strangers));
      continue;
    }
    Stranger& stranger = strangers_.emplace_back();
    stranger.socket = std::move(socket);
    stranger.address = std::move(address);
    try {
      stranger.thread = std::thread([this, &stranger] { greet(stranger); });
    } catch (const std::system_error& fault) {
      log_(fmt::format("{} refused: starting a thread: {}", stranger.address, fault.what()));
      strangers_.pop_back();
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
  std::list<Stranger> gone;
  {
    const std::lock_guard lock(mutex_);
    for (auto s = strangers_.begin(); s != strangers_.end();) {
      const auto here = s++;
      if (all && here->socket) ::shutdown(here->socket.fd(), SHUT_RDWR);
      if (all || here->done) gone.splice(gone.end(), strangers_, here);
    }
  }
  for (Stranger& stranger : gone) stranger.thread.join();
}

void Acceptor::greet(Stranger& stranger) {
  try {
    const Deadline deadline = after(handshake_limit);
    const json hello = receive_message(stranger.socket, deadline, "waiting for its greeting");
    if (text_of(hello, "kind") == "data")
      take_lane(stranger, hello, deadline);
    else
      admit(stranger, hello, deadline);
  } catch (const Interrupted&) {  // the server ends
  } catch (const std::exception& fault) {
    if (!is_ending()) log_(fmt::format("{} refused: {}", stranger.address, fault.what()));
  }
  const std::lock_guard lock(mutex_);
  stranger.socket = {};
  stranger.done = true;
}

void Acceptor::take_lane(Stranger& stranger, const json& hello, Deadline deadline) {
  const std::string token = text_of(hello, "token");
  const auto lane = hello.find("lane");
  const bool known =
      lane != hello.end() && lane->is_number_unsigned() && lanes_.claim(token, lane->get<std::uint64_t>());
  if (!known) {
    const Error refusal("no open case has this token and waits for this lane");
    send_message(stranger.socket, error_message(refusal), deadline, "refusing a data connection");
    throw Error(fmt::format("data connection: {}", refusal.what()));
  }
  // Before the hand-over: from then on the socket belongs to the session's thread and carries payload.
  send_message(stranger.socket, {{"type", "accepted"}}, deadline, "accepting a data connection");
  const std::lock_guard lock(mutex_);  // reap() may look at the socket
  lanes_.deliver(token, lane->get<std::uint64_t>(), std::move(stranger.socket));
}

void Acceptor::admit(Stranger& stranger, const json& hello, Deadline deadline) {
  greet_client(stranger.socket, hello, key_, deadline);
  keep_alive(stranger.socket);

  std::unique_lock lock(mutex_);
  const Deadline patience = after(busy_grace);
  while (served_ && !is_ending() && !interrupted() && std::chrono::steady_clock::now() < patience)
    changed_.wait_for(lock, check_interval);
  if (is_ending() || interrupted()) return;
  if (served_) {
    const Error busy(fmt::format("busy, served: {} since {}", served_->address, served_->since));
    lock.unlock();
    send_message(stranger.socket, error_message(busy), deadline, "refusing");
    throw busy;
  }
  log_(fmt::format("{} connected (gdrbench {})", stranger.address, text_of(hello, "version")));
  served_ = Served{stranger.socket.fd(), stranger.address, utc_now()};
  waiting_ = Client{std::move(stranger.socket), stranger.address};
  changed_.notify_all();
}

}  // namespace gdrbench::session
