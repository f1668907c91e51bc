#pragma once

#include <cstddef>
#include <cstdint>

namespace gdrbench::memory {

/// Anonymous memory in whole pages, all of them present from the start, so that no page fault falls into a
/// measurement.
class HostMapping {
 public:
  /// Throws SystemError when the length is above what the host has available, or the kernel refuses it.
  /// `huge_pages`: of 2 MiB where enough of them are free, else the ordinary ones.
  HostMapping(std::uint64_t length, bool huge_pages);
  ~HostMapping();
  HostMapping(const HostMapping&) = delete;
  HostMapping& operator=(const HostMapping&) = delete;

  std::byte* address() const { return address_; }
  /// Bytes mapped: whole pages.
  std::uint64_t length() const { return length_; }

 private:
  std::byte* address_ = nullptr;
  std::uint64_t length_ = 0;
};

}  // namespace gdrbench::memory
