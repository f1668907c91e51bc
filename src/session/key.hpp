#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// The key check of the control channel: each end proves that it has the key by an HMAC-SHA256 over the
/// nonces of both. The role is part of the MAC, so a proof sent back to its author proves nothing. The
/// channel itself is neither encrypted nor authenticated after that: it keeps strangers out, not someone who
/// rewrites packets.
namespace gdrbench::session {

enum class Prover { client, server };

inline constexpr std::size_t nonce_bytes = 16;

/// Lower-case hexadecimal of so many random bytes.
std::string random_hex(std::size_t bytes);

/// Whether the text has the form of a nonce. One of another length could shift bytes between the two in a
/// MAC.
bool is_nonce(std::string_view text);

std::string prove_key(std::string_view key, Prover prover, std::string_view client_nonce,
                      std::string_view server_nonce);

/// Compares in a time that does not depend on where the texts differ.
bool same_proof(std::string_view a, std::string_view b);

}  // namespace gdrbench::session
