#pragma once

#include <nlohmann/json.hpp>

#include "gdrbench/report.hpp"

namespace gdrbench::report {

/// Adds `local`, `local_skipped` and `local_crossovers` where the document has any of them.
void add_local(nlohmann::ordered_json& own, const ResultDocument& document);

}  // namespace gdrbench::report
