#include "session/client.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <cstdio>
#include <utility>

#include "base/error_text.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/interrupt.hpp"
#include "session/frame.hpp"
#include "session/handshake.hpp"
#include "session/message.hpp"
#include "session/remote_json.hpp"

namespace gdrbench::session {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr auto farewell_limit = 2s;

std::string name_of(const ConnectOptions& options) {
  const bool bare_ipv6 = options.host.find(':') != std::string::npos && options.host.front() != '[';
  return fmt::format(fmt::runtime(bare_ipv6 ? "[{}]:{}" : "{}:{}"), options.host, options.port);
}

}  // namespace

Client::Client(ConnectOptions options, Harness harness)
    : options_(std::move(options)),
      harness_(std::move(harness)),
      responder_("responder " + name_of(options_)) {
  const std::string name = name_of(options_);
  const Deadline deadline = after(options_.connect_timeout);
  control_ = wire::connect_tcp(server(), deadline);
  keep_alive(control_);
  greet_server(control_, name, options_.key, deadline);
  const json welcome = receive_message(control_, after(options_.reply_timeout),
                                       fmt::format("waiting to be served by {}", name));
  expect_type(welcome, "welcome", name + ": ");
  remote_ = remote_description(welcome, responder_);
}

Client::~Client() {
  if (lost_) return;
  try_send({{"type", "bye"}});
  try {
    const Deadline deadline = after(farewell_limit);
    while (!lost_ && !interrupted()) receive_message(control_, deadline, "leaving");
  } catch (const std::exception&) {  // the end of the connection is what was waited for
  }
}

void Client::send(const json& message) {
  if (lost_) throw PeerLost(fmt::format("{}: the session ended earlier", responder_));
  try {
    send_message(control_, message, after(options_.reply_timeout),
                 fmt::format("{}: sending a message", responder_));
  } catch (const PeerLost&) {
    lost_ = true;
    throw;
  }
}

json Client::receive() {
  return receive(options_.reply_timeout);
}

json Client::receive(std::chrono::milliseconds patience) {
  if (lost_) throw PeerLost(fmt::format("{}: the session ended earlier", responder_));
  try {
    return receive_message(control_, after(patience), fmt::format("{}: waiting for its answer", responder_));
  } catch (const PeerLost& gone) {
    lost_ = true;
    throw PeerLost(fmt::format("{}; was the server stopped or killed? Its output tells", gone.what()));
  }
}

bool Client::has_answer(std::chrono::milliseconds patience) {
  return !lost_ && wire::wait_for(control_.fd(), POLLIN, after(patience));
}

void Client::try_send(const json& message) noexcept {
  try {
    if (!lost_) send_message(control_, message, after(1s), "leaving");
  } catch (const std::exception& fault) {
    lost_ = true;
    if (!interrupted())
      std::fputs(fmt::format("gdrbench: {}\n", printable(responder_ + ": " + fault.what())).c_str(), stderr);
  }
}

}  // namespace gdrbench::session
