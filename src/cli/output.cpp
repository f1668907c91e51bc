#include "cli/output.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>

#include "base/error_text.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/interrupt.hpp"

namespace gdrbench::cli {
namespace {

[[noreturn]] void fail(int errno_value, std::string_view what) {
  if (errno_value == EINTR) throw_if_interrupted();
  throw SystemError(errno_value, fmt::format("writing {}{}to standard output", what, what.empty() ? "" : " "),
                    errno_value == ENOSPC ? "make room, or send it elsewhere" : "");
}

std::string printable_lines(std::string_view text) {
  std::string shown;
  for (;;) {
    const std::size_t end = text.find('\n');
    shown += printable(text.substr(0, end));
    shown += '\n';
    if (end == std::string_view::npos) return shown;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

void print_out(std::string_view text, std::string_view what) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    fail(errno, what);
}

void flush_out(std::string_view what) {
  errno = 0;
  if (!std::cout.flush() || std::fflush(stdout) != 0) fail(errno == 0 ? EIO : errno, what);
}

void print_error(std::string_view text) noexcept {
  try {
    const std::string lines = "gdrbench: " + printable_lines(text);
    std::fwrite(lines.data(), 1, lines.size(), stderr);
  } catch (const std::exception&) {  // out of memory
  }
}

}  // namespace gdrbench::cli
