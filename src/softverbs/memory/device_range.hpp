#pragma once

#include <cstdint>
#include <optional>

#include "memory/memory.hpp"

namespace gdrbench::softverbs {

/// What CUDA knows about a range: device memory within one allocation; EFAULT for managed memory and for
/// device memory that no NIC can reach; EINVAL for a range that leaves its allocation. Nothing when the
/// address is no device's: memory of the host, registered with CUDA or not, or no CUDA in this process.
std::optional<ResolvedMemory> resolve_device_range(std::uint64_t address, std::uint64_t length);

}  // namespace gdrbench::softverbs
