#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "gdrbench/case.hpp"
#include "gdrbench/end_info.hpp"
#include "gdrbench/path_proof.hpp"
#include "gdrbench/run_result.hpp"

/// What a client hears from a server, checked before anything relies on it, and with every text made
/// printable. All throw PeerLost that begins with `who` (the name of the server, or of the rank that it runs)
/// and names the field.
namespace gdrbench::session {

/// The description in "welcome".
EndInfo remote_description(const nlohmann::json& welcome, const std::string& who);

/// A member of `message` that must be an object.
nlohmann::json object_of(const nlohmann::json& message, const char* key, const std::string& who);

/// In "opened": with what another rank opens its data connections to this one.
std::string token_of(const nlohmann::json& opened, std::size_t rank, const std::string& who);

/// The proof in "connected" and in "done".
PathProof proof_of(const nlohmann::json& message, const std::string& who);

/// What the server's verification says in "done"; empty when it found no wrong byte.
std::string verdict_of(const nlohmann::json& done, const std::string& who);

/// The figures of a rank in "done", which must fit the messages of the run where the rank counts them.
RankResult result_of(const nlohmann::json& done, const Case& c, const RunRequest& request, std::size_t rank,
                     const std::string& who);

}  // namespace gdrbench::session
