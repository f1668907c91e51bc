#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "memory/memory.hpp"
#include "nic/context.hpp"
#include "nic/device.hpp"

namespace gdrbench::softverbs {

/// A memory region. lkey and rkey are one number.
class MemoryRegion : public ibv_mr {
 public:
  static MemoryRegion& of(ibv_mr* region) { return *static_cast<MemoryRegion*>(region); }

  std::uint64_t base = 0;  ///< address of its first byte in this process (host or device)
  std::uint64_t iova = 0;  ///< what work requests call the address of its first byte
  int access = 0;          ///< enum ibv_access_flags
  std::shared_ptr<Memory> memory;
};

/// Leave to use a range of a region, which stays registered as long as this lives: ibv_dereg_mr waits. Keep
/// it only while copying one piece.
struct RegionAccess {
  struct EndUse {
    void operator()(std::atomic<int>* users) const {
      if (users->fetch_sub(1, std::memory_order_release) == 1) users->notify_all();
    }
  };
  std::unique_ptr<std::atomic<int>, EndUse> hold;
  const Memory* memory = nullptr;  ///< null: refused
  std::uint64_t address = 0;       ///< of this process (host or device), where `memory` wants it
  explicit operator bool() const { return memory != nullptr; }
};

/// The memory keys of the process. As hardware's, a key is an index and, in its low 8 bits, a variant that
/// counts up each time the index is given out; freed indexes are used again in turn. Thread-safe; finding a
/// region takes no lock, so threads that move data keep nobody from registering.
class RegionTable {
 public:
  /// Gives the region its keys (never 0, not soon used again). Throws std::system_error: ENOMEM,
  /// `max_regions` are registered.
  void insert(MemoryRegion& region);
  /// Waits until nobody uses it.
  void remove(MemoryRegion& region);

  /// For a range that a work request names by its lkey: the region is of this domain, holds the whole range,
  /// and has `access` (IBV_ACCESS_LOCAL_WRITE where the NIC writes, else 0). A length of 0 is never refused
  /// by the caller's duty: do not ask.
  RegionAccess local(std::uint32_t lkey, const ibv_pd* domain, std::uint64_t address, std::uint64_t length,
                     int access);
  /// For a range that a remote names by its rkey; `access` is one of the IBV_ACCESS_REMOTE flags.
  RegionAccess remote(std::uint32_t rkey, const ibv_pd* domain, std::uint64_t address, std::uint64_t length,
                      int access);

 private:
  RegionAccess find(std::uint32_t key, const ibv_pd* domain, std::uint64_t address, std::uint64_t length,
                    int access);

  struct Slot {
    std::atomic<const MemoryRegion*> region{nullptr};
    std::atomic<int> users{0};  ///< accesses that live; raised before `region` is read
    std::uint8_t variant = 0;
  };
  static constexpr std::size_t chunk_slots = 1024;
  static constexpr std::size_t max_chunks =
      (static_cast<std::size_t>(max_regions) + chunk_slots) / chunk_slots;
  using Chunk = std::array<Slot, chunk_slots>;
  std::uint32_t free_index();
  Slot* slot_at(std::uint32_t index);

  std::array<std::atomic<Chunk*>, max_chunks> chunks_{};  ///< never move, because accesses point into them
  std::mutex lock_;                                       ///< of the rest
  std::vector<std::unique_ptr<Chunk>> owned_chunks_;
  std::uint32_t given_out_ = 0;     ///< indexes ever used, from 1
  std::deque<std::uint32_t> free_;  ///< the longest unused first
};

}  // namespace gdrbench::softverbs
