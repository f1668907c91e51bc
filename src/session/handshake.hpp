#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "wire/socket.hpp"

/// The first messages of a connection. A control connection: hello from the client, hello from the server,
/// proofs of the key if there is one, then "welcome" once the server serves this client; a hello with the
/// token of a visit joins that. A data connection: hello with the token and number of a connection that an
/// opened case expects, then "accepted", then payload.
///
/// The key check: each end proves that it has the key by an HMAC-SHA256 over the nonces of both. The role is
/// part of the MAC, so a proof sent back to its author proves nothing. The channel itself is neither
/// encrypted nor authenticated after that: it keeps out who does not have the key, not someone who rewrites
/// packets.
namespace gdrbench::session {

/// Raised with every change of the messages that the other release would not understand.
inline constexpr int protocol_version = 5;

/// {"gdrbench", "version", "commit", "kind"}; `kind` is "control" or "data".
nlohmann::json make_hello(const std::string& kind);

/// Throws Error that tells both versions and which end to update, unless the hello has our protocol.
void check_protocol(const nlohmann::json& hello, const std::string& remote);

/// The client's side of a control connection, up to the proofs; `visit` is the token of the one to join, or
/// empty. Throws Error (versions), UsageError (keys), PeerLost.
void greet_server(wire::Socket& socket, const std::string& server, const std::string& key,
                  const std::string& visit, Deadline deadline);

/// The server's side, after the client's hello was read. Answers a client that it refuses, and throws as
/// above.
void greet_client(wire::Socket& socket, const nlohmann::json& hello, const std::string& key,
                  Deadline deadline);

/// Lets the kernel find out within about ten seconds that the other host is gone.
void keep_alive(wire::Socket& socket);

/// Lower-case hexadecimal of so many random bytes.
std::string random_hex(std::size_t bytes);

inline constexpr std::size_t nonce_bytes = 16;
/// Whether the text has the form of a nonce. One of another length could shift bytes between the two in a
/// MAC.
bool is_nonce(std::string_view text);

enum class Prover { client, server };
std::string prove_key(std::string_view key, Prover prover, std::string_view client_nonce,
                      std::string_view server_nonce);

/// Compares in a time that does not depend on where the texts differ.
bool same_secret(std::string_view a, std::string_view b);

}  // namespace gdrbench::session
