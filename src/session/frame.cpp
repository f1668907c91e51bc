#include "session/frame.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "base/fields.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::session {
namespace {

using nlohmann::json;

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

json parse(std::string_view text) {
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
        fmt::format("{}: what came is no gdrbench message: it claims {} bytes ({} are allowed); it "
                    "begins with {}",
                    tried, length, max_message_bytes, show_bytes(as_text(known))));
  }
  std::string text(length, '\0');
  socket.receive_all(std::as_writable_bytes(std::span(text)), deadline, tried);
  try {
    return parse(text);
  } catch (const std::exception& fault) {
    throw PeerLost(fmt::format("{}: what came is no gdrbench message: {}; it begins with {}", tried,
                               fault.what(), show_bytes(std::string_view(text).substr(0, first.size()))));
  }
}

}  // namespace gdrbench::session
