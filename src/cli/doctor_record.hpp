#pragma once

#include <string>

#include "doctor/facts.hpp"

namespace gdrbench::cli {

/// Writes what was looked at into `folder`, without names, and says so on standard error. SIGINT and SIGTERM
/// end it with Interrupted, before anything is written or once the recording is whole. Throws SystemError,
/// UsageError.
void record_to(const std::string& folder, const doctor::Facts& facts);

}  // namespace gdrbench::cli
