#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "session/client.hpp"

/// What a server tells of its machine, which may be larger than a message: {"type": "examined", "part",
/// "more"}, parts of one JSON text.
namespace gdrbench::session {

std::vector<nlohmann::json> parts_of(const nlohmann::json& answer);

}  // namespace gdrbench::session
