#include "base/fields.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "gdrbench/error.hpp"

namespace gdrbench {

using nlohmann::json;

std::string words_of(const json::exception& fault) {
  const std::string text = fault.what();
  const auto end = text.find("] ");
  return end == std::string::npos ? text : text.substr(end + 2);
}

json parse_bounded(std::string_view text) {
  constexpr int max_depth = 32;
  return json::parse(text, [](int depth, json::parse_event_t, json&) {
    if (depth > max_depth) throw UsageError("too deeply nested");
    return true;
  });
}

void refuse_value(const std::string& name, const std::string& why) {
  throw UsageError(fmt::format("{}: {}", name, why));
}

std::uint64_t read_whole(const json& value, const std::string& name, std::int64_t min, std::uint64_t max) {
  const auto refuse = [&] {
    // A container may be a megabyte long: only its kind is shown.
    const std::string shown = value.is_number() ? value.dump() : value.type_name();
    refuse_value(name, fmt::format("{} is not a whole number from {} to {}", shown, min, max));
  };
  if (!value.is_number_integer()) refuse();
  // A signed non-negative number never comes from the parser, but from JSON built in this process.
  if (!value.is_number_unsigned()) {
    const auto number = value.get<std::int64_t>();
    if (number < min || (number >= 0 && static_cast<std::uint64_t>(number) > max)) refuse();
    return static_cast<std::uint64_t>(number);
  }
  const auto number = value.get<std::uint64_t>();
  if (number > max || (min > 0 && number < static_cast<std::uint64_t>(min))) refuse();
  return number;
}

double read_real(const json& value, const std::string& name, double min, double max) {
  if (!value.is_number()) refuse_value(name, "not a number");
  const auto number = value.get<double>();
  if (!std::isfinite(number) || number < min || number > max)
    refuse_value(name, fmt::format("{} is not a number from {} to {}", number, min, max));
  return number;
}

bool read_flag(const json& value, const std::string& name) {
  if (!value.is_boolean()) refuse_value(name, "not true or false");
  return value.get<bool>();
}

std::string read_text(const json& value, const std::string& name, std::size_t max) {
  if (!value.is_string()) refuse_value(name, "not a text");
  if (value.get_ref<const std::string&>().size() > max)
    refuse_value(name, fmt::format("longer than {} bytes", max));
  return value.get<std::string>();
}

Fields::Fields(const json& object, std::string name) : object_(object), name_(std::move(name)) {
  if (!object_.is_object()) throw UsageError(fmt::format("{}: not an object", name_));
}

const json& Fields::at(std::string_view key) const {
  const auto member = object_.find(key);
  if (member == object_.end()) refuse_value(name_of(key), "missing");
  return *member;
}

}  // namespace gdrbench
