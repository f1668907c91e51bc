#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "wire/socket.hpp"

/// The first messages of a connection. A control connection: hello from the client, hello from the server,
/// proofs of the key if there is one, then "welcome" once the server serves this client. A data connection:
/// hello with the token and lane of an opened case, then "accepted", then payload.
namespace gdrbench::session {

/// Raised with every change of the messages that the other release would not understand.
inline constexpr int protocol_version = 4;

/// {"gdrbench", "version", "commit", "kind"}; `kind` is "control" or "data".
nlohmann::json make_hello(const std::string& kind);

/// Throws Error that tells both versions and which end to update, unless the hello has our protocol.
void check_protocol(const nlohmann::json& hello, const std::string& peer);

/// The client's side of a control connection, up to the proofs. Throws Error (versions), UsageError (keys),
/// PeerLost.
void greet_server(wire::Socket& socket, const std::string& peer, const std::string& key, Deadline deadline);

/// The server's side, after the client's hello was read. Answers a client that it refuses, and throws as
/// above.
void greet_client(wire::Socket& socket, const nlohmann::json& hello, const std::string& key,
                  Deadline deadline);

/// A data connection for one lane of the case that has this token.
wire::Socket open_lane(const wire::Address& server, const std::string& token, std::uint32_t lane,
                       Deadline deadline);

/// Lets the kernel find out within about ten seconds that the other host is gone.
void keep_alive(wire::Socket& socket);

}  // namespace gdrbench::session
