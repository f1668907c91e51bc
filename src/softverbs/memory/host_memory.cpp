#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdio>

#include "memory/memory.hpp"

// The kernel's <asm-generic/mman-common.h>; missing from the headers of older distributions.
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace gdrbench::softverbs {

#if defined(__x86_64__)

// Assembly, since the compiler neither instruments nor reorders it. The stores of `rep movsb` may become
// visible in any order, but all of them before a later store (Intel SDM volume 3, "Fast-String Operation and
// Out-of-Order Stores").
void dma_copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const std::size_t last = last_store_bytes(reinterpret_cast<std::uint64_t>(to), bytes);
  std::size_t body = bytes - last;
  if (body != 0) asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(body) : : "memory");
  std::uint64_t unit = 0;
  if (last == 1)
    asm volatile("movb (%2), %b0\n\tmovb %b0, (%1)" : "=&q"(unit) : "r"(to), "r"(from) : "memory");
  else
    asm volatile("movq (%2), %0\n\tmovq %0, (%1)" : "=&r"(unit) : "r"(to), "r"(from) : "memory");
}

#else

// Volatile, so that no library function, which sanitizers intercept, takes the loop's place.
GDRBENCH_UNINSTRUMENTED void dma_copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  using Word = std::uint64_t;
  auto* target = static_cast<volatile unsigned char*>(to);
  const auto* source = static_cast<const volatile unsigned char*>(from);
  const std::size_t last = last_store_bytes(reinterpret_cast<std::uintptr_t>(to), bytes);
  const bool aligned_alike =
      (reinterpret_cast<std::uintptr_t>(to) ^ reinterpret_cast<std::uintptr_t>(from)) % sizeof(Word) == 0;
  const volatile unsigned char* const last_source = source + (bytes - last);
  while (source != last_source) {
    if (aligned_alike && reinterpret_cast<std::uintptr_t>(target) % sizeof(Word) == 0 &&
        static_cast<std::size_t>(last_source - source) >= sizeof(Word)) {
      *reinterpret_cast<volatile Word*>(target) = *reinterpret_cast<const volatile Word*>(source);
      target += sizeof(Word);
      source += sizeof(Word);
    } else {
      *target++ = *source++;
    }
  }
  std::atomic_thread_fence(std::memory_order_release);
  if (last == 1) {
    *target = *source;
  } else {
    union {
      Word word;
      unsigned char bytes[sizeof(Word)];
    } unit;
    for (unsigned char& byte : unit.bytes) byte = *source++;
    *reinterpret_cast<volatile Word*>(target) = unit.word;
  }
}

#endif

namespace {

class HostMemory final : public Memory {
 public:
  bool on_host() const override { return true; }

  int write(std::uint64_t address, std::span<const std::byte> from) const override {
    dma_copy(reinterpret_cast<void*>(address), from.data(), from.size());
    return 0;
  }
  int read(std::uint64_t address, std::span<std::byte> to) const override {
    dma_copy(to.data(), reinterpret_cast<const void*>(address), to.size());
    return 0;
  }
  GDRBENCH_UNINSTRUMENTED int fetch_add(std::uint64_t address, std::uint64_t add,
                                        std::uint64_t& before) const override {
    before = __atomic_fetch_add(reinterpret_cast<std::uint64_t*>(address), add, __ATOMIC_SEQ_CST);
    return 0;
  }
  GDRBENCH_UNINSTRUMENTED int compare_swap(std::uint64_t address, std::uint64_t compare, std::uint64_t swap,
                                           std::uint64_t& before) const override {
    before = compare;
    __atomic_compare_exchange_n(reinterpret_cast<std::uint64_t*>(address), &before, swap, false,
                                __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return 0;
  }
};

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

struct Pages {
  std::uint64_t first = 0, end = 0;
};

/// Of the range, whole; false when it is empty or wraps around.
bool pages_of(std::uint64_t address, std::uint64_t length, Pages& pages) {
  const std::uint64_t page = page_bytes();
  std::uint64_t end = 0;
  if (length == 0 || __builtin_add_overflow(address, length, &end) ||
      __builtin_add_overflow(end, page - 1, &end))
    return false;
  pages = {address / page * page, end / page * page};
  return true;
}

int populate(Pages pages, int advice) {
  void* first = reinterpret_cast<void*>(pages.first);
  while (madvise(first, pages.end - pages.first, advice) != 0)
    if (errno != EINTR) return errno;
  return 0;
}

/// EINVAL means an unsuitable page as well as an unknown advice, so one page that is certainly suitable is
/// asked for.
bool kernel_populates() {
  static const bool populates = [] {
    alignas(64) static std::byte suitable{};
    Pages pages;
    pages_of(reinterpret_cast<std::uint64_t>(&suitable), 1, pages);
    return populate(pages, MADV_POPULATE_WRITE) == 0;
  }();
  return populates;
}

bool mapped_writable(Pages pages) {
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return false;
  char line[512];
  bool line_start = true;  // names of files can be longer than `line`
  while (pages.first < pages.end && std::fgets(line, sizeof line, maps) != nullptr) {
    std::uint64_t first = 0, end = 0;
    char permissions[5] = {};
    if (line_start && std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &first, &end, permissions) == 3 &&
        first <= pages.first && pages.first < end) {
      if (permissions[1] != 'w') break;
      pages.first = end;
    }
    line_start = std::find(std::begin(line), std::end(line), '\n') != std::end(line);
  }
  std::fclose(maps);
  return pages.first >= pages.end;
}

}  // namespace

std::shared_ptr<Memory> host_memory() {
  static const auto& memory =
      *new std::shared_ptr<Memory>(std::make_shared<HostMemory>());  // outlives all users
  return memory;
}

int fault_in(std::uint64_t address, std::uint64_t length, bool writable) {
  Pages pages;
  if (!pages_of(address, length, pages)) return EINVAL;
  if (!kernel_populates()) return fault_in_by_reading(address, length, writable);
  return populate(pages, writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0 ? 0 : EFAULT;
}

int fault_in_by_reading(std::uint64_t address, std::uint64_t length, bool writable) {
  Pages pages;
  if (!pages_of(address, length, pages)) return EINVAL;
  for (std::uint64_t page = pages.first; page < pages.end; page += page_bytes()) {
    std::byte byte{};
    const iovec local{&byte, 1}, remote{reinterpret_cast<void*>(page), 1};
    if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != 1) return EFAULT;
  }
  return !writable || mapped_writable(pages) ? 0 : EFAULT;
}

}  // namespace gdrbench::softverbs
