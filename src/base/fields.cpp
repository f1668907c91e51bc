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

Fields::Fields(const json& object, std::string name) : object_(object), name_(std::move(name)) {
  if (!object_.is_object()) throw UsageError(fmt::format("{}: an object is due", name_));
}

void Fields::refuse(const char* key, const std::string& why) const {
  throw UsageError(fmt::format("{}.{}: {}", name_, key, why));
}

const json& Fields::at(const char* key) const {
  const auto member = object_.find(key);
  if (member == object_.end()) refuse(key, "missing");
  return *member;
}

std::uint64_t Fields::number(const char* key, std::uint64_t least, std::uint64_t most) const {
  const json& value = at(key);
  // A signed non-negative number never comes from the parser, but from JSON built in this process.
  const bool whole =
      value.is_number_unsigned() || (value.is_number_integer() && value.get<std::int64_t>() >= 0);
  if (!whole || value.get<std::uint64_t>() < least || value.get<std::uint64_t>() > most) {
    // A container may be a megabyte long: only its kind is shown.
    const std::string shown = value.is_number() ? value.dump() : value.type_name();
    refuse(key, fmt::format("{} is not a whole number from {} to {}", shown, least, most));
  }
  return value.get<std::uint64_t>();
}

double Fields::real(const char* key, double least, double most) const {
  const json& value = at(key);
  if (!value.is_number()) refuse(key, "not a number");
  const auto number = value.get<double>();
  if (!std::isfinite(number) || number < least || number > most)
    refuse(key, fmt::format("{} is not a number from {} to {}", number, least, most));
  return number;
}

bool Fields::flag(const char* key) const {
  const json& value = at(key);
  if (!value.is_boolean()) refuse(key, "not true or false");
  return value.get<bool>();
}

std::string Fields::text(const char* key, std::size_t longest) const {
  const json& value = at(key);
  if (!value.is_string()) refuse(key, "not a text");
  if (value.get_ref<const std::string&>().size() > longest)
    refuse(key, fmt::format("longer than {} bytes", longest));
  return value.get<std::string>();
}

}  // namespace gdrbench
