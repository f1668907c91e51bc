#include "doctor/probe_error.hpp"

#include <cctype>
#include <cstdlib>

#include "gdrbench/error.hpp"

namespace gdrbench::doctor {
namespace {

// The first name of an errno value that is followed by its description.
int errno_in(const std::string& text) {
  constexpr int most_errno = 133;
  std::size_t first = std::string::npos;
  int found = 0;
  for (int value = 1; value <= most_errno; ++value) {
    const std::string name = errno_name(value);
    const std::size_t at = text.find(name + " (");
    if (at == std::string::npos || at >= first) continue;
    if (at > 0 && (std::isalnum(static_cast<unsigned char>(text[at - 1])) != 0 || text[at - 1] == '_'))
      continue;
    first = at;
    found = value;
  }
  return found;
}

}  // namespace

void set_error(ProbeAnswer& answer, const std::string& text) {
  answer.text = text;
  answer.errno_value = errno_in(text);
  const std::size_t name = text.find("IBV_WC_");
  const std::size_t number = name == std::string::npos ? name : text.find(" (", name);
  if (number == std::string::npos) return;
  answer.status = std::atoi(text.c_str() + number + 2);
  const std::string vendor = "vendor error ";
  if (const std::size_t at = text.find(vendor, number); at != std::string::npos)
    answer.vendor_error = static_cast<int>(std::strtol(text.c_str() + at + vendor.size(), nullptr, 0));
}

}  // namespace gdrbench::doctor
