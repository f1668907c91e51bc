#include "doctor/shallow_json.hpp"

#include "gdrbench/error.hpp"

namespace gdrbench::doctor {

nlohmann::json parse_shallow(std::string_view text) {
  constexpr int max_depth = 32;
  return nlohmann::json::parse(text, [](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth > max_depth) throw UsageError("too deeply nested");
    return true;
  });
}

}  // namespace gdrbench::doctor
