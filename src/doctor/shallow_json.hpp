#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace gdrbench::doctor {

/// JSON of another machine, nested at most 32 deep: copies and dumps recurse, and a megabyte of '[' would
/// overflow the stack. Throws UsageError or the library's parse_error, which names the place.
nlohmann::json parse_shallow(std::string_view text);

}  // namespace gdrbench::doctor
