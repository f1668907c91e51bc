#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <string>

#include "base/field_list.hpp"

/// Flags that come from the list of a struct's fields: every field that has a flag there.
namespace gdrbench::cli {

/// "0 to 31" or "control, rdma_cm".
template <class T>
std::string accepted(const Range& range) {
  if constexpr (Named<T>)
    return name_list<T>();
  else
    return fmt::format("{} to {}", static_cast<std::uint64_t>(range.min),
                       static_cast<std::uint64_t>(range.max));
}

/// Throws UsageError that names the flag, the value and what is accepted.
template <class T>
T value_from_text(const std::string& flag, const std::string& text, const Range& range) {
  if constexpr (Named<T>) {
    return from_name<T>(text);
  } else {
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, fault] = std::from_chars(text.data(), end, number);
    if (fault != std::errc{} || rest != end)
      throw UsageError(fmt::format("{} {}: not a whole number from {}", flag, text, accepted<T>(range)));
    if (static_cast<long double>(number) < range.min || static_cast<long double>(number) > range.max)
      throw UsageError(fmt::format("{} {}: outside {} … {}", flag, number,
                                   static_cast<std::uint64_t>(range.min),
                                   static_cast<std::uint64_t>(range.max)));
    return static_cast<T>(number);
  }
}

template <class T>
std::string text_of(const T& value) {
  if constexpr (Named<T>)
    return std::string(to_string(value));
  else
    return std::to_string(value);
}

/// Adds the flags to the command; they set `into`, which must live as long as the command.
template <Listed T>
void add_listed_flags(CLI::App& command, T& into, const std::string& group) {
  for_each_field<T>([&](const auto& field) {
    using M = std::remove_cvref_t<decltype(into.*field.member)>;
    if constexpr (Named<M> || (std::integral<M> && !std::same_as<M, bool>)) {
      if (field.flag.empty()) return;
      const std::string flag(field.flag);
      const auto set = [&into, flag, member = field.member, range = field.range](const std::string& text) {
        into.*member = value_from_text<M>(flag, text, range);
      };
      command
          .add_option_function<std::string>(
              flag, set, fmt::format("{}, {}{}", field.help, Named<M> ? "of " : "", accepted<M>(field.range)))
          ->default_str(text_of(into.*field.member))
          ->type_name(Named<M> ? "NAME" : "UINT")
          ->group(group);
    }
  });
}

}  // namespace gdrbench::cli
