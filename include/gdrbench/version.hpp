#pragma once

namespace gdrbench {

/// "0.1.0"
extern const char* const version;
/// Git commit of the build, with "-dirty" when the tree had changes; "unknown" outside a checkout.
extern const char* const commit;

}  // namespace gdrbench
