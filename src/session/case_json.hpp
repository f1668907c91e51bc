#pragma once

#include <nlohmann/json.hpp>

#include "gdrbench/case.hpp"
#include "gdrbench/run_result.hpp"

/// What crosses the control channel about a case and its runs. Readers throw UsageError that names the field
/// when one is missing, of another type, unknown by name or out of range.
namespace gdrbench::session {

nlohmann::json case_to_json(const Case& c);
Case case_from_json(const nlohmann::json& j);

nlohmann::json request_to_json(const RunRequest& request);
RunRequest request_from_json(const nlohmann::json& j);

/// Without the samples: only the initiator has them.
nlohmann::json end_result_to_json(const EndResult& result);
EndResult end_result_from_json(const nlohmann::json& j);

}  // namespace gdrbench::session
