#include "session/message.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "base/error_text.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::session {
namespace {

using nlohmann::json;

constexpr std::size_t longest_text = 4096;

}  // namespace

std::string type_of(const json& message) {
  return text_of(message, "type");
}

std::string text_of(const json& message, std::string_view key) {
  const auto member = message.find(key);
  if (member == message.end() || !member->is_string()) return "";
  return printable(member->get_ref<const std::string&>(), longest_text);
}

json error_message(const std::exception& error) {
  const auto* known = dynamic_cast<const Error*>(&error);
  std::string kind = "failed";
  if (known != nullptr && known->status() == ExitStatus::unavailable) kind = "unavailable";
  if (known != nullptr && known->status() == ExitStatus::usage) kind = "usage";
  return {{"type", "error"}, {"kind", kind}, {"text", error.what()}};
}

void throw_error(const json& error, const std::string& prefix) {
  const std::string text = prefix + text_of(error, "text");
  const std::string kind = text_of(error, "kind");
  if (kind == "unavailable") throw Unavailable(text);
  if (kind == "usage") throw UsageError(text);
  throw Error(text);
}

void expect_type(const json& message, std::string_view type, const std::string& prefix) {
  const std::string found = type_of(message);
  if (found == type) return;
  if (found == "error") throw_error(message, prefix);
  throw PeerLost(fmt::format("{}broke the protocol: it sent '{}' where '{}' was due", prefix, found, type));
}

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

}  // namespace gdrbench::session
