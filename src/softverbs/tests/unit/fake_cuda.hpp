#pragma once

#include <cstddef>
#include <cstdint>

namespace gdrbench::softverbs::fake {

/// Memory that the fake driver hands out; the CPU can touch only the last two, at the addresses that are
/// given.
enum class Kind {
  device,                ///< cudaMalloc: belongs to the primary context
  other_context_device,  ///< cuMemAlloc in a context that the program made
  vmm,                   ///< cuMemMap, in segments of `segment_bytes`; belongs to no context
  vmm_with_hole,         ///< the same, but nothing is mapped at the second segment
  vmm_not_rdma_capable,  ///< the same without the flag gpuDirectRDMACapable
  managed,               ///< cudaMallocManaged
  host                   ///< cudaMallocHost
};

constexpr std::size_t segment_bytes = std::size_t{64} << 10;
constexpr int ordinal = 1;

/// Since the last reset.
struct Counters {
  int copies_to_device = 0, copies_to_host = 0;
  int streams_made = 0, streams_destroyed = 0;
  int pinned_made = 0, pinned_freed = 0;
  int primary_retained = 0, primary_released = 0;
  int captures_endangered = 0;             ///< calls that a graph's capture would not have survived
  std::uint64_t last_written_address = 0;  ///< by the copy that arrived last on the device
  std::size_t last_written_bytes = 0;
};

// Exported by the fake driver beside the entries of the real one, under these names.
extern "C" {
/// Consecutive calls give adjacent ranges of whole pages. 0 when the arena is used up.
std::uint64_t fake_cuda_allocate(std::size_t bytes, Kind kind);
void fake_cuda_free(std::uint64_t address);
/// Where the bytes that the device sees at an address can be reached by the CPU.
std::byte* fake_cuda_bytes(std::uint64_t address);
void fake_cuda_counters(Counters* counters);
/// The nth copy from now on is refused; 0: none.
void fake_cuda_fail_copy(int nth);
/// No pinned memory can be had.
void fake_cuda_refuse_pinned(bool refuse);
/// The driver does not know mappings, and tells them as ranges.
void fake_cuda_make_old(bool old);
/// The driver is gone, as at the end of a process: every call is refused.
void fake_cuda_deinitialize(bool gone);
/// Makes a context of the program the calling thread's only one.
void fake_cuda_enter_program_context();
/// Whether it still is that.
bool fake_cuda_in_program_context();
/// Destroys the context that memory of this kind belongs to, with all that was made in it; the primary one
/// can be used again. As with a real driver, using what is gone ends the process.
void fake_cuda_destroy_context(Kind kind);
/// Frees all memory, forgets faults and counters.
void fake_cuda_reset();
}

}  // namespace gdrbench::softverbs::fake
