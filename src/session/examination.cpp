#include "session/examination.hpp"

#include <fmt/format.h>

#include "base/fields.hpp"
#include "gdrbench/error.hpp"
#include "session/channel.hpp"

namespace gdrbench::session {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

// Escaped once more in a message, a text at most doubles: two of these fit one.
constexpr std::size_t part_bytes = 256 << 10;
constexpr std::size_t max_answer_bytes = 64 << 20;
constexpr auto grace = 5s;

json parsed(const std::string& text, const std::string& server) {
  try {
    return parse_bounded(text);
  } catch (const std::exception& fault) {
    throw PeerLost(fmt::format("{}: protocol violation: its description of the machine is not JSON", server));
  }
}

}  // namespace

std::vector<json> parts_of(const json& answer) {
  // In ASCII, so that no part ends within a character.
  const std::string text = answer.dump(-1, ' ', true, json::error_handler_t::replace);
  std::vector<json> parts;
  for (std::size_t at = 0; at < text.size(); at += part_bytes)
    parts.push_back({{"type", "examined"},
                     {"part", text.substr(at, part_bytes)},
                     {"more", at + part_bytes < text.size()}});
  return parts;
}

json examine(Client& client, const json& request) {
  client.send({{"type", "examine"}, {"request", request}}, client.server_name());
  std::string text;
  for (bool more = true; more;) {
    const json message = client.receive(client.server_name(), examination_limit + grace);
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
