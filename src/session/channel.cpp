#include "session/channel.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <ctime>
#include <span>
#include <utility>

#include "base/error_text.hpp"
#include "base/fields.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::session {
namespace {

using nlohmann::json;

constexpr std::size_t max_text_bytes = 4096;
// Escaped once more in a message, a text at most doubles: two of these fit one.
constexpr std::size_t part_bytes = 256 << 10;

constexpr std::pair<ErrorKind, std::string_view> kind_names[] = {{ErrorKind::failed, "failed"},
                                                                 {ErrorKind::unavailable, "unavailable"},
                                                                 {ErrorKind::usage, "usage"},
                                                                 {ErrorKind::lost, "lost"}};

std::string show_bytes(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto code = static_cast<unsigned char>(c);
    if (code >= 0x20 && code < 0x7f)
      text += c;
    else
      text += fmt::format("\\x{:02x}", code);
  }
  return '"' + text + '"';
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

json parse_message(std::string_view text) {
  json message = parse_bounded(text);
  if (!message.is_object()) throw UsageError("not an object");
  return message;
}

}  // namespace

void send_message(wire::Socket& socket, const json& message, Deadline deadline, const std::string& tried) {
  const std::string text = message.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > max_message_bytes)
    throw Error(fmt::format("{}: the message has {} bytes, more than the {} allowed", tried, text.size(),
                            max_message_bytes));
  std::string frame;
  frame.reserve(text.size() + 4);
  for (const int shift : {24, 16, 8, 0}) frame += static_cast<char>(text.size() >> shift & 0xff);
  frame += text;
  socket.send_all(std::as_bytes(std::span(frame)), deadline, tried);
}

json receive_message(wire::Socket& socket, Deadline deadline, const std::string& tried) {
  std::array<std::byte, 32> first{};
  const std::span header = std::span(first).first(4);
  socket.receive_all(header, deadline, tried);
  std::uint32_t length = 0;
  for (const std::byte b : header) length = length << 8 | std::to_integer<std::uint32_t>(b);

  if (length > max_message_bytes) {
    const ssize_t more = ::recv(socket.fd(), first.data() + 4, first.size() - 4, MSG_DONTWAIT);
    const auto known = std::span(first).first(4 + static_cast<std::size_t>(more > 0 ? more : 0));
    throw PeerLost(
        fmt::format("{}: not a gdrbench message: it claims {} bytes ({} are allowed); it "
                    "begins with {}",
                    tried, length, max_message_bytes, show_bytes(as_text(known))));
  }
  std::string text(length, '\0');
  socket.receive_all(std::as_writable_bytes(std::span(text)), deadline, tried);
  try {
    return parse_message(text);
  } catch (const std::exception& fault) {
    throw PeerLost(fmt::format("{}: not a gdrbench message: {}; it begins with {}", tried, fault.what(),
                               show_bytes(std::string_view(text).substr(0, first.size()))));
  }
}

std::string type_of(const json& message) {
  return text_of(message, "type");
}

std::string text_of(const json& message, std::string_view key) {
  const auto member = message.find(key);
  if (member == message.end() || !member->is_string()) return "";
  return printable(member->get_ref<const std::string&>(), max_text_bytes);
}

ErrorKind kind_of(const std::exception& error) {
  const auto* known = dynamic_cast<const Error*>(&error);
  if (known == nullptr) return ErrorKind::failed;
  switch (known->status()) {
    case ExitStatus::unavailable:
      return ErrorKind::unavailable;
    case ExitStatus::usage:
      return ErrorKind::usage;
    case ExitStatus::peer_lost:
      return ErrorKind::lost;
    default:
      return ErrorKind::failed;
  }
}

ErrorKind kind_of(const json& error) {
  const std::string text = text_of(error, "kind");
  for (const auto& [kind, name] : kind_names)
    if (name == text) return kind;
  return ErrorKind::failed;
}

void throw_as(ErrorKind kind, const std::string& text) {
  switch (kind) {
    case ErrorKind::unavailable:
      throw Unavailable(text);
    case ErrorKind::usage:
      throw UsageError(text);
    case ErrorKind::lost:
      throw PeerLost(text);
    case ErrorKind::failed:
      break;
  }
  throw Error(text);
}

json error_message(const std::exception& error) {
  const std::string_view kind = kind_names[static_cast<std::size_t>(kind_of(error))].second;
  return {{"type", "error"}, {"kind", kind}, {"text", error.what()}};
}

void throw_error(const json& error, const std::string& prefix) {
  const ErrorKind kind = kind_of(error);
  throw_as(kind == ErrorKind::lost ? ErrorKind::failed : kind, prefix + text_of(error, "text"));
}

void expect_type(const json& message, std::string_view type, const std::string& prefix) {
  const std::string found = type_of(message);
  if (found == type) return;
  if (found == "error") throw_error(message, prefix);
  throw PeerLost(fmt::format("{}protocol violation: it sent '{}' where '{}' was due", prefix, found, type));
}

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

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

}  // namespace gdrbench::session
