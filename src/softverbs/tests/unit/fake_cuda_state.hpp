#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <functional>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <vector>

#include "fake_cuda.hpp"
#include "memory/cuda_driver.hpp"

/// A CUDA driver without a GPU, as libcuda.so.1, with the entries that the software NIC uses. What it calls
/// device memory cannot be touched by the CPU at its address, copies need their context and a stream of it,
/// and those with pinned memory happen only when the stream is waited for, so that a buffer that is used too
/// early gives wrong bytes.
#define FAKE_CUDA_ENTRY extern "C" __attribute__((visibility("default")))

namespace gdrbench::softverbs {

struct cuda::ContextTag {};
struct cuda::StreamTag {
  cuda::Context context = nullptr;
  std::deque<std::function<void()>> pending;
};

namespace fake {

constexpr std::size_t arena_bytes = std::size_t{64} << 20;

struct Allocation {
  std::size_t bytes = 0;
  Kind kind{};

  bool on_device() const { return kind != Kind::host && kind != Kind::managed; }
  bool in_segments() const {
    return kind == Kind::vmm || kind == Kind::vmm_with_hole || kind == Kind::vmm_not_rdma_capable;
  }
};

struct Pinned {
  std::size_t bytes = 0;
  cuda::Context context = nullptr;
};

/// All state of the fake driver. Memory is mapped twice: at the addresses that the program sees, mostly
/// without access, and where the driver reaches it.
struct State {
  std::mutex mutex;
  std::uint64_t arena = 0;
  std::byte* bytes = nullptr;
  std::size_t used = 0;
  std::map<std::uint64_t, Allocation> allocations;
  std::map<std::uint64_t, Pinned> pinned;
  Counters counters;
  int copies_until_failure = 0;
  bool refuse_pinned = false, gone = false, old = false, other_context_gone = false;

  State() {
    const int memory = memfd_create("fake_cuda", MFD_CLOEXEC);
    if (memory < 0 || ftruncate(memory, arena_bytes) != 0) std::abort();
    void* outside = mmap(nullptr, arena_bytes, PROT_NONE, MAP_SHARED, memory, 0);
    void* inside = mmap(nullptr, arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (outside == MAP_FAILED || inside == MAP_FAILED) std::abort();
    close(memory);
    arena = reinterpret_cast<std::uint64_t>(outside);
    bytes = static_cast<std::byte*>(inside);
  }

  /// The allocation that holds the whole range, else the end.
  auto find(std::uint64_t address, std::size_t length) {
    const auto next = allocations.upper_bound(address);
    if (next == allocations.begin()) return allocations.end();
    const auto found = std::prev(next);
    const std::uint64_t into = address - found->first;
    const std::size_t whole = found->second.bytes;
    return into < whole && length <= whole - into ? found : allocations.end();
  }
  std::byte* inside(std::uint64_t address) const { return bytes + (address - arena); }
  /// Null when the address is in no pinned memory.
  const Pinned* find_pinned(std::uint64_t address) const {
    const auto next = pinned.upper_bound(address);
    if (next == pinned.begin() || address - std::prev(next)->first >= std::prev(next)->second.bytes)
      return nullptr;
    return &std::prev(next)->second;
  }
  bool is_pinned(const void* memory) const {
    return find_pinned(reinterpret_cast<std::uint64_t>(memory)) != nullptr;
  }
};

/// Usable to the very end of the process, as a library that is never unloaded is.
inline State& state() {
  static auto& all = *new State;
  return all;
}

inline std::list<cuda::StreamTag>& streams() {
  static auto& all = *new std::list<cuda::StreamTag>;
  return all;
}

inline cuda::ContextTag primary_context, other_context, program_context;
inline thread_local std::vector<cuda::Context> context_stack;
inline thread_local int capture_mode = 0;  // global: the strictest, and the default

/// Null for memory that belongs to no context, which is copied in the primary one.
inline cuda::Context owner_of(const Allocation& allocation) {
  if (allocation.in_segments()) return nullptr;
  return allocation.kind == Kind::other_context_device ? &other_context : &primary_context;
}

}  // namespace fake
}  // namespace gdrbench::softverbs
