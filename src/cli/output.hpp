#pragma once

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

}  // namespace gdrbench::cli
