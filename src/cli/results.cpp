#include "cli/results.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "gdrbench/error.hpp"

namespace gdrbench::cli {

std::string as_text(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

ProgressLine::ProgressLine() : terminal_(isatty(STDERR_FILENO) != 0) {}

ProgressLine::~ProgressLine() {
  if (terminal_) fmt::print(stderr, "\r\033[K");
}

void ProgressLine::operator()(std::size_t done, std::size_t total, const std::string& now) const {
  if (terminal_) fmt::print(stderr, "\r\033[K[{}/{}] {}", done + 1, total, now);
}

void hand_over(const ResultDocument& document, const std::string& out, const std::string& table,
               const std::exception_ptr& failure) {
  std::exception_ptr not_written;
  // The file comes first, so that it is kept even where standard output is gone.
  try {
    if (!out.empty()) write_file_atomically(out, as_text(to_json(document)));
  } catch (const std::exception& fault) {
    if (failure) fmt::print(stderr, "gdrbench: {}\n", fault.what());
    not_written = std::current_exception();
  }
  fmt::print("{}", table);
  if (std::fflush(stdout) != 0 && !not_written && !failure)
    throw SystemError(errno, "writing the table to standard output");
  if (failure) std::rethrow_exception(failure);
  if (not_written) std::rethrow_exception(not_written);
}

}  // namespace gdrbench::cli
