#include "memory/host_mapping.hpp"

#include <fmt/format.h>
#include <linux/mman.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>

#include "gdrbench/error.hpp"
#include "gdrbench/size.hpp"

namespace gdrbench::memory {
namespace {

constexpr std::uint64_t huge_page_bytes = 2 << 20;

std::string attempt(std::uint64_t length) {
  return fmt::format("allocating {} bytes ({}) of host memory", length, format_size(length));
}

/// MemAvailable of /proc/meminfo in bytes; no limit where that cannot be read.
std::uint64_t available_bytes() {
  std::ifstream meminfo("/proc/meminfo");
  for (std::string line; std::getline(meminfo, line);) {
    unsigned long long kib = 0;
    if (std::sscanf(line.c_str(), "MemAvailable: %llu kB", &kib) == 1)
      return kib * 1024;  // NOLINT(cert-err34-c)
  }
  return std::numeric_limits<std::uint64_t>::max();
}

/// The kernel would promise more than it has and end some process later, perhaps not ours.
void require_available(std::uint64_t length) {
  const std::uint64_t available = available_bytes();
  if (length <= available) return;
  throw SystemError(
      ENOMEM, attempt(length),
      fmt::format("only {} bytes ({}) are available (MemAvailable in /proc/meminfo); use smaller sizes, "
                  "a lower depth or a smaller footprint",
                  available, format_size(available)));
}

std::uint64_t whole_pages(std::uint64_t length, std::uint64_t page) {
  if (length > std::numeric_limits<std::uint64_t>::max() - page)
    throw SystemError(EOVERFLOW, attempt(length));
  return (length + page - 1) / page * page;
}

std::byte* map(std::uint64_t length, int extra_flags) {
  void* const address = mmap(nullptr, length, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | extra_flags, -1, 0);
  return address == MAP_FAILED ? nullptr : static_cast<std::byte*>(address);
}

}  // namespace

HostMapping::HostMapping(std::uint64_t length, bool huge_pages) {
  require_available(length);
  if (huge_pages) {
    length_ = whole_pages(length, huge_page_bytes);
    address_ = map(length_, MAP_HUGETLB | MAP_HUGE_2MB);
    if (address_ != nullptr) return;
  }
  length_ = whole_pages(length, static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)));
  address_ = map(length_, 0);
  if (address_ == nullptr)
    throw SystemError(errno, attempt(length_),
                      "a limit on address space (ulimit -v) or on mappings may be too small");
}

HostMapping::~HostMapping() {
  if (munmap(address_, length_) != 0)
    std::fprintf(stderr, "unmapping %llu bytes of host memory: %s\n",
                 static_cast<unsigned long long>(length_), errno_name(errno).c_str());
}

}  // namespace gdrbench::memory
