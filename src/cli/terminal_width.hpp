#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

namespace gdrbench::cli {

/// Columns that text on standard output is wrapped to: the terminal's, within reason; 100 where it is none.
inline std::size_t terminal_width() {
  winsize size{};
  const bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? std::clamp<std::size_t>(size.ws_col, 40, 160) : 100;
}

}  // namespace gdrbench::cli
