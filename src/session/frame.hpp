#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "wire/socket.hpp"

/// Messages on a TCP connection: a length (4 bytes, big endian), then so many bytes of JSON, an object.
namespace gdrbench::session {

inline constexpr std::uint32_t max_message_bytes = 1 << 20;

/// Sends one message; throws PeerLost on close, reset or timeout. `tried` begins the error texts.
void send_message(wire::Socket& socket, const nlohmann::json& message, Deadline deadline,
                  const std::string& tried);

/// Receives one message. Nothing is allocated before the length is known to be allowed. Throws PeerLost on
/// close, reset or timeout, and when what comes is no message: the text then shows the first bytes.
nlohmann::json receive_message(wire::Socket& socket, Deadline deadline, const std::string& tried);

}  // namespace gdrbench::session
