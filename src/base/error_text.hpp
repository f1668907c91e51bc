#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gdrbench {

/// Text of a remote end made fit for one line of a log or a terminal: control characters (C0, DEL, C1) and
/// bytes that are no UTF-8 become \xNN. What is longer than `longest` bytes ends before that, at a whole
/// character, with "…".
std::string printable(std::string_view text, std::size_t longest = std::string::npos);

/// "; confirm with: gdrbench doctor --check acs": the end of an error text whose cause that check of the
/// doctor would see. Empty without a check. (A name, as the doctor lies above those who use this; a test
/// compares the names with its list.)
inline std::string confirm_with(std::string_view check) {
  return check.empty() ? "" : "; confirm with: gdrbench doctor --check " + std::string(check);
}

}  // namespace gdrbench
