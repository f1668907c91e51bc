#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "gdrbench/case.hpp"

namespace gdrbench {

/// What the JSON library says, without its "[json.exception.…] " in front.
std::string words_of(const nlohmann::json::exception& fault);

/// JSON from outside this process, nested at most 32 deep: copies and dumps recurse, and a megabyte of '['
/// would overflow the stack. Throws UsageError, or the library's parse_error, which names the place.
nlohmann::json parse_bounded(std::string_view text);

/// Checked reading of a JSON object that the other end sent. Every fault is a UsageError that names the
/// field.
class Fields {
 public:
  /// `name` is what the object is called in error texts.
  Fields(const nlohmann::json& object, std::string name);

  /// A whole number within [least, most].
  std::uint64_t number(const char* key, std::uint64_t least, std::uint64_t most) const;
  template <class Integer>
  Integer number_as(const char* key, std::uint64_t least, std::uint64_t most) const {
    return static_cast<Integer>(number(key, least, most));
  }
  /// A finite number within [least, most].
  double real(const char* key, double least, double most) const;
  bool flag(const char* key) const;
  std::string text(const char* key, std::size_t longest) const;
  bool is_null(const char* key) const { return at(key).is_null(); }
  const nlohmann::json& at(const char* key) const;
  Fields inner(const char* key) const { return {at(key), name_ + "." + key}; }

  template <class E>
  E name(const char* key) const {
    const std::string value = text(key, 64);
    try {
      return from_name<E>(value);
    } catch (const std::exception& fault) {
      refuse(key, fault.what());
    }
  }

 private:
  [[noreturn]] void refuse(const char* key, const std::string& why) const;

  const nlohmann::json& object_;
  std::string name_;
};

}  // namespace gdrbench
