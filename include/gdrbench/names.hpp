#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace gdrbench {

/// The names of an enumeration in flags, JSON and tables, in order of preference: `what`, what a value of it
/// is called in error texts, and `names`, a range of {value, name}.
template <class E>
struct EnumNames;

template <class E>
constexpr std::string_view to_string(E value) {
  for (const auto& [candidate, name] : EnumNames<E>::names)
    if (candidate == value) return name;
  return "?";
}

/// Throws UsageError that names the value and lists what is accepted.
[[noreturn]] void throw_unknown_name(std::string_view what, std::string_view value,
                                     const std::string& accepted);

/// "tcp, rdma, gdr": for help and error texts.
template <class E>
std::string name_list() {
  std::string all;
  for (const auto& [value, name] : EnumNames<E>::names) all += (all.empty() ? "" : ", ") + std::string(name);
  return all;
}

template <class E>
E from_name(std::string_view value) {
  for (const auto& [candidate, name] : EnumNames<E>::names)
    if (name == value) return candidate;
  throw_unknown_name(EnumNames<E>::what, value, name_list<E>());
}

}  // namespace gdrbench

/// To be used in namespace gdrbench.
#define GDRBENCH_ENUM_NAMES(E, what_, ...)                                   \
  template <>                                                                \
  struct EnumNames<E> {                                                      \
    static constexpr std::string_view what = what_;                          \
    static constexpr std::pair<E, std::string_view> names[] = {__VA_ARGS__}; \
  }
