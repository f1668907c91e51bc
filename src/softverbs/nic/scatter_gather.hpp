#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <span>

#include "link/link.hpp"
#include "nic/region_table.hpp"

namespace gdrbench::softverbs {

/// From this size on, what lies in host memory is read from the other process's memory, in one copy; below it
/// the two copies through a ring cost less than the system call.
constexpr std::uint64_t reference_bytes = 16 << 10;

/// The payload of a frame that is sent by reference: copied, since the remote can change the ring. Their
/// number.
std::size_t copy_segments(const RingSpans& payload, const FrameHeader& header,
                          std::array<Segment, max_segments>& segments);

/// Where bytes of a message come from: a frame's payload, or the memory of the remote process.
struct Source {
  RingSpans payload;
  const Link* link = nullptr;           ///< null: `payload`
  std::span<const Segment> segments{};  ///< of the remote

  std::uint64_t size() const;
};

/// Copies bytes [offset, offset + length) of a source to registered memory. 0, or an errno value.
int deliver(const Source& from, std::uint64_t offset, const RegionAccess& to, std::uint64_t length);

/// The scatter/gather list of a work request.
struct SegmentList {
  std::span<const ibv_sge> segments;
  const ibv_pd* domain;
  RegionTable& regions;

  std::uint64_t length() const;
  /// Whether the first `bytes` of it may be used with `access` (IBV_ACCESS_LOCAL_WRITE, or 0 to read).
  bool allows(std::uint64_t bytes, int access) const;
  /// Copies the list's bytes from `offset` on into `to`, filling it. 0, or an errno value: EACCES for a key
  /// or range, else what the memory says.
  int gather(std::uint64_t offset, const RingSpans& to) const;
  /// Copies `length` bytes of `from` from its offset `from_offset` on to the list's bytes from `offset` on.
  int scatter(std::uint64_t offset, const Source& from, std::uint64_t from_offset,
              std::uint64_t length) const;
  /// The ranges as addresses of this process, where all of it is host memory; 0 where it is not.
  std::size_t host_ranges(std::span<Segment> ranges) const;
};

}  // namespace gdrbench::softverbs
