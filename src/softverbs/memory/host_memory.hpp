#pragma once

#include <cstdint>
#include <memory>

#include "memory/memory.hpp"

namespace gdrbench::softverbs {

/// Memory of this process that the CPU can use.
std::shared_ptr<Memory> host_memory();

/// Faults the pages of a range in, as pinning them for a device does. Returns 0; EFAULT where a page is not
/// mapped, not readable, not writable where `writable`, or cannot be pinned (a device's registers, a file
/// past its end); EINVAL for an empty range or one that wraps around.
int fault_in(std::uint64_t address, std::uint64_t length, bool writable);

/// The same for kernels before 5.14, which have no MADV_POPULATE_READ and MADV_POPULATE_WRITE.
int fault_in_by_reading(std::uint64_t address, std::uint64_t length, bool writable);

}  // namespace gdrbench::softverbs
