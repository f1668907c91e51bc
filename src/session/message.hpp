#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace gdrbench::session {

/// The "type" of a message; empty when there is none.
std::string type_of(const nlohmann::json& message);

/// A text member of a message made printable(), at most 4096 bytes. Empty when there is none.
std::string text_of(const nlohmann::json& message, std::string_view key);

/// {"type": "error", "kind", "text"}: the kind keeps the exit status across the connection.
nlohmann::json error_message(const std::exception& error);

/// Throws what an error message stands for: Unavailable, UsageError or Error, with `prefix` before its text.
[[noreturn]] void throw_error(const nlohmann::json& error, const std::string& prefix);

/// Checks that `message` has this type. Throws what an error message stands for, else PeerLost.
void expect_type(const nlohmann::json& message, std::string_view type, const std::string& prefix);

/// Now, RFC 3339, UTC, to the second.
std::string utc_now();

}  // namespace gdrbench::session
