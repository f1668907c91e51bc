#pragma once

#include <cstdint>

#include "path/bounce.hpp"

/// The ranges of a case's fields: of what a server takes, and so of the flags that make them.
namespace gdrbench {

// Larger than any machine, small enough that sums and page rounding cannot overflow.
inline constexpr std::uint64_t most_bytes = std::uint64_t{1} << 44;
// In which the bounce memory of a lane stays small.
inline constexpr std::uint64_t least_chunk_bytes = 256;
inline constexpr std::uint64_t most_chunk_bytes = path::max_chunk_bytes;
inline constexpr std::uint32_t most_staging_slots = 256;
inline constexpr std::uint32_t most_staging_streams = 16;
inline constexpr std::uint32_t most_depth = 4096;
inline constexpr std::uint32_t most_queue_pairs = 1024;
inline constexpr std::uint32_t most_tcp_threads = 64;
inline constexpr std::uint32_t most_inline_bytes = 65'536;
inline constexpr int most_gid_index = 65'535;

}  // namespace gdrbench
