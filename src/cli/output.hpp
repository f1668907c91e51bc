#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

/// What the program says on its standard output and standard error.
namespace gdrbench::cli {

/// Writes all of it to standard output. Throws SystemError, which says that `what` was written, and
/// Interrupted.
void print_out(std::string_view text, std::string_view what = "");

/// The same for what a library has written to standard output.
void flush_out(std::string_view what = "");

/// "gdrbench: <text>" on standard error. Texts may quote a flag's value or what another machine said: nothing
/// in them can steer a terminal; lines stay lines. Never throws: there is nobody left to tell.
void print_error(std::string_view text) noexcept;

/// Columns that text on standard output is wrapped to: the terminal's, within reason; 100 where it is none.
inline std::size_t terminal_width() {
  winsize size{};
  const bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? std::clamp<std::size_t>(size.ws_col, 40, 160) : 100;
}

}  // namespace gdrbench::cli
