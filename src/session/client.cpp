#include "session/client.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <cstdio>
#include <utility>

#include "base/error_text.hpp"
#include "base/fields.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/interrupt.hpp"
#include "session/channel.hpp"
#include "session/handshake.hpp"
#include "session/replies.hpp"

namespace gdrbench::session {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr auto farewell_limit = 2s;
// Of what a server tells of its machine, which it may take a long time to find out.
constexpr std::size_t max_answer_bytes = 64 << 20;
constexpr auto examination_grace = 5s;

std::string name_of(const ConnectOptions& options) {
  const bool bare_ipv6 = options.host.find(':') != std::string::npos && options.host.front() != '[';
  return fmt::format(fmt::runtime(bare_ipv6 ? "[{}]:{}" : "{}:{}"), options.host, options.port);
}

json parsed(const std::string& text, const std::string& server) {
  try {
    return parse_bounded(text);
  } catch (const std::exception& fault) {
    throw PeerLost(fmt::format("{}: protocol violation: its description of the machine is not JSON", server));
  }
}

}  // namespace

Client::Client(ConnectOptions options, Harness harness)
    : options_(std::move(options)),
      harness_(std::move(harness)),
      name_(name_of(options_)),
      server_name_("server " + name_) {
  const json welcome = greet();
  remote_ = remote_description(welcome, server_name_);
  visit_ = text_of(welcome, "visit");
}

Client::Client(const Client& first, std::string visit)
    : options_(first.options_),
      harness_(first.harness_),
      name_(first.name_),
      server_name_(first.server_name_),
      remote_(first.remote_),
      visit_(std::move(visit)) {
  greet();
}

std::shared_ptr<Client> Client::join() const {
  return std::shared_ptr<Client>(new Client(*this, visit_));
}

json Client::greet() {
  const Deadline deadline = after(options_.connect_timeout);
  control_ = wire::connect_tcp(address(), deadline);
  numeric_host_ = control_.remote_host();
  keep_alive(control_);
  greet_server(control_, name_, options_.key, visit_, deadline);
  json welcome = receive_message(control_, after(options_.reply_timeout),
                                 fmt::format("waiting to be served by {}", name_));
  expect_type(welcome, "welcome", name_ + ": ");
  return welcome;
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

void Client::send(const json& message, const std::string& who) {
  if (lost_) throw PeerLost(fmt::format("{}: the session ended earlier", who));
  try {
    send_message(control_, message, after(options_.reply_timeout), fmt::format("{}: sending a message", who));
  } catch (const PeerLost&) {
    lost_ = true;
    throw;
  }
}

json Client::receive(const std::string& who) {
  return receive(who, options_.reply_timeout);
}

json Client::receive(const std::string& who, std::chrono::milliseconds patience) {
  if (lost_) throw PeerLost(fmt::format("{}: the session ended earlier", who));
  try {
    return receive_message(control_, after(patience), fmt::format("{}: waiting for its answer", who));
  } catch (const PeerLost& gone) {
    lost_ = true;
    throw PeerLost(fmt::format("{}; was the server stopped or killed? Its output tells", gone.what()));
  }
}

bool Client::has_message() const {
  return !lost_ && wire::wait_for(control_.fd(), POLLIN, after(0ms));
}

void Client::try_send(const json& message) noexcept {
  try {
    if (!lost_) send_message(control_, message, after(1s), "leaving");
  } catch (const std::exception& fault) {
    lost_ = true;
    if (!interrupted())
      std::fputs(fmt::format("gdrbench: {}\n", printable(server_name_ + ": " + fault.what())).c_str(),
                 stderr);
  }
}

json examine(Client& client, const json& request) {
  client.send({{"type", "examine"}, {"request", request}}, client.server_name());
  std::string text;
  for (bool more = true; more;) {
    const json message = client.receive(client.server_name(), examination_limit + examination_grace);
    expect_type(message, "examined", client.server_name() + ": ");
    const auto part = message.find("part"), next = message.find("more");
    if (part == message.end() || !part->is_string() || next == message.end() || !next->is_boolean() ||
        text.size() > max_answer_bytes)
      throw PeerLost(fmt::format("{}: protocol violation: a malformed part of the description of its machine",
                                 client.server_name()));
    text += part->get_ref<const std::string&>();
    more = next->get<bool>();
  }
  return parsed(text, client.server_name());
}

}  // namespace gdrbench::session
