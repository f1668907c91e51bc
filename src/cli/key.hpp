#pragma once

#include <string>

namespace gdrbench::cli {

/// The key from `file`, else from the environment variable GDRBENCH_KEY, else empty. Surrounding white space
/// is dropped. Throws UsageError when the file cannot be read or is empty.
std::string read_key(const std::string& file);

}  // namespace gdrbench::cli
