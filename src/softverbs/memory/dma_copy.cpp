#include "memory/dma_copy.hpp"

#include <atomic>

#include "memory/memory.hpp"

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

}  // namespace gdrbench::softverbs
