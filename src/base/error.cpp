#include "gdrbench/error.hpp"

#include <fmt/format.h>

#include <cstring>

namespace gdrbench {
namespace {

std::string with_hint(std::string text, const std::string& hint) {
  if (!hint.empty()) text += "; " + hint;
  return text;
}

}  // namespace

std::string errno_name(int errno_value) {
  const char* name = strerrorname_np(errno_value);
  return name != nullptr ? name : fmt::format("errno {}", errno_value);
}

SystemError::SystemError(int errno_value, const std::string& tried, const std::string& hint)
    : Error(with_hint(fmt::format("{}: {} ({})", tried, errno_name(errno_value),
                                  strerrordesc_np(errno_value) ? strerrordesc_np(errno_value) : "unknown"),
                      hint)),
      code_(errno_value) {}

CudaError::CudaError(int code, const std::string& name, const std::string& tried, const std::string& hint)
    : Error(with_hint(fmt::format("{}: {}", tried, name), hint)), code_(code) {}

}  // namespace gdrbench
