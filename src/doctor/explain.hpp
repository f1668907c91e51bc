#pragma once

#include <string>

namespace gdrbench::doctor {

/// docs/troubleshooting.md: every check with its question, sources and causes, in Markdown.
std::string explain_checks();

}  // namespace gdrbench::doctor
