#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gdrbench {

/// Text of a peer made fit for one line of a log or a terminal: control characters (C0, DEL, C1) and bytes
/// that are no UTF-8 become \xNN. What is longer than `longest` bytes ends before that, at a whole character,
/// with "…".
std::string printable(std::string_view text, std::size_t longest = std::string::npos);

}  // namespace gdrbench
