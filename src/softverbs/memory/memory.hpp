#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace gdrbench::softverbs {

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

}  // namespace gdrbench::softverbs
