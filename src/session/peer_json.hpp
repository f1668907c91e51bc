#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "gdrbench/case.hpp"
#include "gdrbench/run_result.hpp"

/// What a client hears from a responder, checked before anything relies on it. All throw PeerLost that begins
/// with `responder` and names the field.
namespace gdrbench::session {

/// The description in "welcome", with every text in it made printable.
nlohmann::json peer_description(const nlohmann::json& welcome, const std::string& responder);

/// A member of `message` that must be an object.
nlohmann::json object_of(const nlohmann::json& message, const char* key, const std::string& responder);

/// What the responder's verification says in "done"; empty when it found no wrong byte.
std::string verdict_of(const nlohmann::json& done, const std::string& responder);

/// The figures in "done", which must fit the messages of the run where the responder counts them.
EndResult result_of(const nlohmann::json& done, const Case& c, const RunRequest& request,
                    const std::string& responder);

}  // namespace gdrbench::session
