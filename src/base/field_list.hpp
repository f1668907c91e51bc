#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/fields.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/names.hpp"

/// The fields of a struct, listed once: from the list come its JSON both ways and its JSON Schema.
///
///   template <>
///   struct FieldList<CpuInfo> {
///     static constexpr auto fields = std::tuple(field("model", &CpuInfo::model, "…"), …);
///   };
///
/// A field is a number, a flag, a text, a named enumeration, a struct with a list of its own, or a vector or
/// optional of those; a vector of pairs of texts is an object. A derived struct's list may begin with its
/// base's. An absent optional is null in JSON; with `static constexpr bool omits_absent = true` in
/// the list, it is left out.
namespace gdrbench {

/// What a number may be, both ends included; of a text, `max` is its largest length in bytes.
struct Range {
  long double min = 0;
  long double max = 18446744073709551615.0L;
};

template <class T, class M>
struct Field {
  std::string_view name;
  M T::*member;
  std::string_view help;
  Range range;
  std::string_view flag;  ///< of the command line, where it is an option
};
template <class T, class M>
constexpr Field<T, M> field(std::string_view name, M T::*member, std::string_view help, Range range = {},
                            std::string_view flag = {}) {
  return {name, member, help, range, flag};
}

template <class T>
struct FieldList;

template <class T>
concept Listed = requires {
  FieldList<T>::fields;
};
template <class E>
concept Named = requires {
  EnumNames<E>::names;
};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

/// {name, text}, in an order of their own.
using Labels = std::vector<std::pair<std::string, std::string>>;

template <class T>
constexpr bool omits_absent() {
  if constexpr (requires { FieldList<T>::omits_absent; }) return FieldList<T>::omits_absent;
  return false;
}

template <class T, class Visit>
constexpr void for_each_field(Visit visit) {
  std::apply([&](const auto&... fields) { (visit(fields), ...); }, FieldList<T>::fields);
}

template <class Json, class T>
Json value_to_json(const T& value) {
  if constexpr (IsOptional<T>::value) {
    return value ? value_to_json<Json>(*value) : Json(nullptr);
  } else if constexpr (std::same_as<T, Labels>) {
    Json object = Json::object();
    for (const auto& [name, text] : value) object[name] = text;
    return object;
  } else if constexpr (IsVector<T>::value) {
    Json array = Json::array();
    for (const auto& element : value) array.push_back(value_to_json<Json>(element));
    return array;
  } else if constexpr (Named<T>) {
    return Json(to_string(value));
  } else if constexpr (Listed<T>) {
    Json object = Json::object();
    for_each_field<T>([&](const auto& field) {
      const auto& member = value.*field.member;
      if constexpr (omits_absent<T>() && IsOptional<std::remove_cvref_t<decltype(member)>>::value)
        if (!member) return;
      object[std::string(field.name)] = value_to_json<Json>(member);
    });
    return object;
  } else {
    return Json(value);
  }
}

template <Listed T>
T read_fields(const Fields& object);

/// The value, which error texts call `name`. Throws UsageError.
template <class T>
T value_from_json(const nlohmann::json& value, const std::string& name, const Range& range) {
  if constexpr (IsOptional<T>::value) {
    if (value.is_null()) return std::nullopt;
    return value_from_json<typename T::value_type>(value, name, range);
  } else if constexpr (std::same_as<T, Labels>) {
    if (!value.is_object()) throw UsageError(name + ": not an object");
    Labels labels;
    for (const auto& [key, text] : value.items())
      labels.emplace_back(key, read_text(text, name + "." + key, static_cast<std::size_t>(range.max)));
    return labels;
  } else if constexpr (IsVector<T>::value) {
    if (!value.is_array()) throw UsageError(name + ": not an array");
    T values;
    values.reserve(value.size());
    for (std::size_t i = 0; i < value.size(); ++i)
      values.push_back(
          value_from_json<typename T::value_type>(value[i], name + "[" + std::to_string(i) + "]", range));
    return values;
  } else if constexpr (Listed<T>) {
    return read_fields<T>(Fields(value, name));
  } else if constexpr (Named<T>) {
    return read_name<T>(value, name);
  } else if constexpr (std::same_as<T, bool>) {
    return read_flag(value, name);
  } else if constexpr (std::same_as<T, std::string>) {
    return read_text(value, name, static_cast<std::size_t>(range.max));
  } else if constexpr (std::floating_point<T>) {
    return read_real(value, name, static_cast<double>(range.min), static_cast<double>(range.max));
  } else {
    const long double highest = std::numeric_limits<T>::max();
    return static_cast<T>(read_whole(value, name, static_cast<std::int64_t>(range.min),
                                     static_cast<std::uint64_t>(std::min(range.max, highest))));
  }
}

template <Listed T>
T read_fields(const Fields& object) {
  T value{};
  for_each_field<T>([&](const auto& field) {
    auto& member = value.*field.member;
    using Member = std::remove_reference_t<decltype(member)>;
    if constexpr (omits_absent<T>() && IsOptional<Member>::value)
      if (!object.has(field.name)) return;
    member = value_from_json<Member>(object.at(field.name), object.name_of(field.name), field.range);
  });
  return value;
}

/// JSON Schema (2020-12) of a value in this range.
template <class T>
nlohmann::ordered_json schema_of(const Range& range = {}) {
  using Json = nlohmann::ordered_json;
  if constexpr (IsOptional<T>::value) {
    Json schema = schema_of<typename T::value_type>(range);
    if (schema.contains("enum"))
      schema["enum"].push_back(nullptr);
    else
      schema["type"] = Json::array({schema["type"], "null"});
    return schema;
  } else if constexpr (std::same_as<T, Labels>) {
    return {{"type", "object"}, {"additionalProperties", {{"type", "string"}}}};
  } else if constexpr (IsVector<T>::value) {
    return {{"type", "array"}, {"items", schema_of<typename T::value_type>(range)}};
  } else if constexpr (Named<T>) {
    Json names = Json::array();
    for (const auto& [value, name] : EnumNames<T>::names) names.push_back(name);
    return {{"enum", std::move(names)}};
  } else if constexpr (Listed<T>) {
    Json required = Json::array(), properties = Json::object();
    for_each_field<T>([&](const auto& field) {
      using Member = std::remove_cvref_t<decltype(std::declval<T>().*field.member)>;
      Json property;
      if constexpr (omits_absent<T>() && IsOptional<Member>::value) {
        property = schema_of<typename Member::value_type>(field.range);
      } else {
        property = schema_of<Member>(field.range);
        required.push_back(field.name);
      }
      if (!field.help.empty()) property["description"] = field.help;
      properties[std::string(field.name)] = std::move(property);
    });
    return {{"type", "object"},
            {"additionalProperties", false},
            {"required", std::move(required)},
            {"properties", std::move(properties)}};
  } else if constexpr (std::same_as<T, bool>) {
    return {{"type", "boolean"}};
  } else if constexpr (std::same_as<T, std::string>) {
    return {{"type", "string"}};
  } else {
    Json schema = {{"type", std::floating_point<T> ? "number" : "integer"}};
    schema["minimum"] = static_cast<std::int64_t>(range.min);
    if (range.max < 9e15L) schema["maximum"] = static_cast<std::int64_t>(range.max);
    return schema;
  }
}

}  // namespace gdrbench
