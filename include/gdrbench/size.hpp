#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gdrbench {

/// Reads one size in bytes: decimal or 0x hexadecimal, optional suffix k/M/G/T with or without iB or B
/// (powers of 1024): "8", "4k", "4KiB", "0x1000". Throws UsageError with the position of the fault.
std::uint64_t parse_size(std::string_view text);

/// Reads a list of sizes and ranges: "8,4k,1M" or "8:64M:x2" (from:to:factor, both ends included). Every size
/// is at least 1; the order given is kept, repeated sizes are dropped. Throws UsageError.
std::vector<std::uint64_t> parse_sizes(std::string_view text);

/// "8 B", "4 KiB", "1.5 MiB"; "1025 B" where two decimals are not exact; from 16 MiB on rounded to two
/// decimals.
std::string format_size(std::uint64_t bytes);

/// The same, never rounded: for sizes of messages, of which an odd one must show as such.
std::string format_exact_size(std::uint64_t bytes);

}  // namespace gdrbench
