#include "cli/key.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "gdrbench/error.hpp"

namespace gdrbench::cli {
namespace {

std::string trimmed(const std::string& text) {
  const char* blanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(blanks);
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

}  // namespace

std::string read_key(const std::string& file) {
  if (file.empty()) {
    const char* value = std::getenv("GDRBENCH_KEY");
    return value != nullptr ? trimmed(value) : "";
  }
  std::ifstream in(file);
  if (!in) {
    const int fault = errno;
    throw UsageError(fmt::format("--key-file {}: {} ({}); give a file that holds the key", file,
                                 errno_name(fault), std::strerror(fault)));
  }
  std::ostringstream content;
  content << in.rdbuf();
  std::string key = trimmed(content.str());
  if (key.empty()) throw UsageError(fmt::format("--key-file {}: the file holds no key", file));
  return key;
}

}  // namespace gdrbench::cli
