#pragma once

#include <span>
#include <string>

#include "doctor/check.hpp"

namespace gdrbench::doctor {

/// Checks with their questions, sources and causes, in Markdown; all of them are docs/troubleshooting.md.
std::string explain_checks(std::span<const Check* const> chosen);

}  // namespace gdrbench::doctor
