#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "gdrbench/names.hpp"

namespace gdrbench {

/// What the JSON library says, without its "[json.exception.…] " in front.
std::string words_of(const nlohmann::json::exception& fault);

/// JSON from outside this process, nested at most 32 deep: copies and dumps recurse, and a megabyte of '['
/// would overflow the stack. Throws UsageError, or the library's parse_error, which names the place.
nlohmann::json parse_bounded(std::string_view text);

/// Throws UsageError "NAME: WHY".
[[noreturn]] void refuse_value(const std::string& name, const std::string& why);

/// Checked reading of values that the other end sent; error texts call the value `name`. All throw
/// UsageError.
///
/// A whole number within [min, max]; of a negative one, the two's complement.
std::uint64_t read_whole(const nlohmann::json& value, const std::string& name, std::int64_t min,
                         std::uint64_t max);
/// A finite number within [min, max].
double read_real(const nlohmann::json& value, const std::string& name, double min, double max);
bool read_flag(const nlohmann::json& value, const std::string& name);
/// Of at most `max` bytes.
std::string read_text(const nlohmann::json& value, const std::string& name, std::size_t max);
template <class E>
E read_name(const nlohmann::json& value, const std::string& name) {
  const std::string text = read_text(value, name, 64);
  for (const auto& [candidate, candidate_name] : EnumNames<E>::names)
    if (candidate_name == text) return candidate;
  try {
    throw_unknown_name(EnumNames<E>::what, text, name_list<E>());
  } catch (const std::exception& fault) {
    refuse_value(name, fault.what());
  }
}
/// The members of a JSON object that the other end sent. Every fault is a UsageError that names the field.
class Fields {
 public:
  /// `name` is what the object is called in error texts.
  Fields(const nlohmann::json& object, std::string name);

  std::string name_of(std::string_view key) const { return name_ + "." + std::string(key); }
  bool has(std::string_view key) const { return object_.find(key) != object_.end(); }
  const nlohmann::json& at(std::string_view key) const;
  bool is_null(std::string_view key) const { return at(key).is_null(); }

  std::uint64_t number(std::string_view key, std::uint64_t min, std::uint64_t max) const {
    return read_whole(at(key), name_of(key), static_cast<std::int64_t>(min), max);
  }
  template <class Integer>
  Integer number_as(std::string_view key, std::uint64_t min, std::uint64_t max) const {
    return static_cast<Integer>(number(key, min, max));
  }
  double real(std::string_view key, double min, double max) const {
    return read_real(at(key), name_of(key), min, max);
  }
  bool flag(std::string_view key) const { return read_flag(at(key), name_of(key)); }
  std::string text(std::string_view key, std::size_t max) const {
    return read_text(at(key), name_of(key), max);
  }
  Fields inner(std::string_view key) const { return {at(key), name_of(key)}; }
  template <class E>
  E name(std::string_view key) const {
    return read_name<E>(at(key), name_of(key));
  }

 private:
  const nlohmann::json& object_;
  std::string name_;
};

}  // namespace gdrbench
