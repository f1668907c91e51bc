#include "base/error_text.hpp"

#include <fmt/format.h>

#include <cstring>

#include "gdrbench/error.hpp"

namespace gdrbench {
namespace {

bool continues(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

// Bytes of the character at the start of `text`; 0 where none starts.
std::size_t character_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const std::size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if (!continues(text[i])) return 0;
  return length;
}

bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  // U+0080 to U+009F, of which U+009B starts an escape sequence as ESC [ does.
  return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

}  // namespace

std::string printable(std::string_view text, std::size_t longest) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    std::string next(character);
    if (length == 0 || is_control(character))
      next = fmt::format("\\x{:02x}", static_cast<unsigned char>(character.back()));
    if (next.size() > longest - shown.size()) return shown + "…";
    shown += next;
    text.remove_prefix(character.size());
  }
  return shown;
}

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
