#pragma once

#include <optional>
#include <string>

#include "doctor/facts/facts.hpp"

/// Whether what a flag names is there, by what drivers answered. All throw UsageError that begins with
/// `flag`.
namespace gdrbench::cli {

void require_gpu(const char* flag, std::optional<int> asked, const doctor::Answers& answers);

/// An empty name asks for none.
void require_device(const char* flag, const std::string& asked, const doctor::Answers& answers);

}  // namespace gdrbench::cli
