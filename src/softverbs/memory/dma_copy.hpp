#pragma once

#include <cstddef>
#include <cstdint>

/// For functions that access an application's memory as a device would, which sanitizers do not see either.
/// They must not call any other function, which would be seen.
#define GDRBENCH_UNINSTRUMENTED __attribute__((no_sanitize("address", "thread", "undefined")))

namespace gdrbench::softverbs {

/// Bytes at the end of a copy of `bytes` (not 0) that are stored alone, after all others: an aligned word, so
/// that a counter which a program polls is never seen half written, else the last byte.
constexpr std::size_t last_store_bytes(std::uint64_t to, std::size_t bytes) {
  return bytes >= sizeof(std::uint64_t) && (to + bytes) % sizeof(std::uint64_t) == 0 ? sizeof(std::uint64_t)
                                                                                     : 1;
}

}  // namespace gdrbench::softverbs
