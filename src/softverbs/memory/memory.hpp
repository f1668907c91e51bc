#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

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

/// Registered memory as the NIC reaches it: through its address, or by a GPU's copy engine. Addresses are
/// virtual addresses of this process (host or device). Thread-safe. Functions return 0 or an errno value.
class Memory {
 public:
  virtual ~Memory() = default;

  /// Whether the CPU can use the addresses; if so, callers may copy by themselves (with `dma_copy`).
  virtual bool on_host() const = 0;
  /// Copies into the memory; its last byte becomes visible last.
  virtual int write(std::uint64_t address, std::span<const std::byte> from) const = 0;
  virtual int read(std::uint64_t address, std::span<std::byte> to) const = 0;
  /// Atomic towards every access of this NIC; `address` is a multiple of 8.
  virtual int fetch_add(std::uint64_t address, std::uint64_t add, std::uint64_t& before) const = 0;
  virtual int compare_swap(std::uint64_t address, std::uint64_t compare, std::uint64_t swap,
                           std::uint64_t& before) const = 0;
};

struct ResolvedMemory {
  std::shared_ptr<Memory> memory;  ///< null: `error` says why not
  int error = 0;                   ///< errno value as ibv_reg_mr would give
};

/// What lies at a range that a program registers by ibv_reg_mr: host memory (mapped, and writable where
/// `writable`, else EFAULT), or device memory of a GPU, as nvidia-peermem would make reachable. Managed
/// memory is refused with EFAULT, a range that is not wholly inside one allocation with EINVAL.
ResolvedMemory resolve_memory(std::uint64_t address, std::uint64_t length, bool writable);

/// For ibv_reg_dmabuf_mr: `descriptor` is a dma-buf of at least offset + length bytes (else EBADF, EINVAL),
/// and `iova` resolves to device memory of a GPU of `length` bytes (else EOPNOTSUPP: only a GPU's are
/// reachable here).
ResolvedMemory resolve_dmabuf(int descriptor, std::uint64_t offset, std::uint64_t length, std::uint64_t iova);

/// Copies as a device would: unseen by sanitizers, which see no device's accesses either, and with the last
/// byte stored last, so that a program may poll for it.
void dma_copy(void* to, const void* from, std::size_t bytes);

/// Memory of this process that the CPU can use.
std::shared_ptr<Memory> host_memory();

/// Faults the pages of a range in, as pinning them for a device does. Returns 0; EFAULT where a page is not
/// mapped, not readable, not writable where `writable`, or cannot be pinned (a device's registers, a file
/// past its end); EINVAL for an empty range or one that wraps around.
int fault_in(std::uint64_t address, std::uint64_t length, bool writable);

/// The same for kernels before 5.14, which have no MADV_POPULATE_READ and MADV_POPULATE_WRITE.
int fault_in_by_reading(std::uint64_t address, std::uint64_t length, bool writable);

}  // namespace gdrbench::softverbs
