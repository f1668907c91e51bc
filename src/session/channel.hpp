#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "wire/socket.hpp"

/// Messages of the control channel: on a TCP connection a length (4 bytes, big endian), then so many bytes of
/// JSON, an object with a "type".
namespace gdrbench::session {

inline constexpr std::uint32_t max_message_bytes = 1 << 20;

/// Sends one message; throws PeerLost on close, reset or timeout. `tried` begins the error texts.
void send_message(wire::Socket& socket, const nlohmann::json& message, Deadline deadline,
                  const std::string& tried);

/// Receives one message. Nothing is allocated before the length is known to be allowed. Throws PeerLost on
/// close, reset or timeout, and when what comes is no message: the text then shows the first bytes.
nlohmann::json receive_message(wire::Socket& socket, Deadline deadline, const std::string& tried);

/// The "type" of a message; empty when there is none.
std::string type_of(const nlohmann::json& message);

/// A text member of a message made printable(), at most 4096 bytes. Empty when there is none.
std::string text_of(const nlohmann::json& message, std::string_view key);

/// How an error is classed where it crosses the control channel; it decides the exit status at the client.
enum class ErrorKind { failed, unavailable, usage, lost };
ErrorKind kind_of(const std::exception& error);
[[noreturn]] void throw_as(ErrorKind kind, const std::string& text);

/// {"type": "error", "kind", "text"}
nlohmann::json error_message(const std::exception& error);
/// The kind of an error message; an unknown one is `failed`.
ErrorKind kind_of(const nlohmann::json& error);

/// Throws what an error message stands for, with `prefix` before its text. What a server has lost, the client
/// has not: that is an Error.
[[noreturn]] void throw_error(const nlohmann::json& error, const std::string& prefix);

/// Checks that `message` has this type. Throws what an error message stands for, else PeerLost.
void expect_type(const nlohmann::json& message, std::string_view type, const std::string& prefix);

/// An answer that may be larger than a message, as several: {"type": "examined", "part", "more"}, parts of
/// one JSON text.
std::vector<nlohmann::json> parts_of(const nlohmann::json& answer);

/// Now, RFC 3339, UTC, to the second.
std::string utc_now();

}  // namespace gdrbench::session
