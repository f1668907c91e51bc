#pragma once

#include <string>
#include <string_view>

namespace gdrbench {

/// "; confirm with: gdrbench doctor --check acs": the end of an error text whose cause that check of the
/// doctor would see. Empty without a check. (A name, as the doctor lies above those who use this; a test
/// compares the names with its list.)
inline std::string confirm_with(std::string_view check) {
  return check.empty() ? "" : "; confirm with: gdrbench doctor --check " + std::string(check);
}

}  // namespace gdrbench
