#pragma once

#include <nlohmann/json_fwd.hpp>

#include "gdrbench/case.hpp"
#include "gdrbench/end_info.hpp"
#include "gdrbench/path_proof.hpp"
#include "gdrbench/run_result.hpp"

/// What crosses the control channel and goes into files, as JSON and back, by the lists of case_fields.hpp
/// and end_fields.hpp. Everything read is checked; all that read throw UsageError that names the field.
namespace gdrbench {

nlohmann::json to_json(const Case& c);
Case case_from_json(const nlohmann::json& value);

nlohmann::json to_json(const RunRequest& request);
RunRequest request_from_json(const nlohmann::json& value);

/// Without the samples.
nlohmann::json to_json(const RankResult& result);
RankResult rank_result_from_json(const nlohmann::json& value);

nlohmann::json to_json(const EndInfo& end);
EndInfo end_info_from_json(const nlohmann::json& value);

nlohmann::json to_json(const PathProof& proof);
PathProof path_proof_from_json(const nlohmann::json& value);

}  // namespace gdrbench
