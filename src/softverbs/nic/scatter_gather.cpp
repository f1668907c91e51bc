#include "nic/scatter_gather.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

namespace gdrbench::softverbs {
namespace {

// What is fetched from a remote's host memory for a GPU goes through host memory of our own.
constexpr std::size_t bounce_bytes = std::size_t{256} << 10;

// Calls action(span) for the parts of [offset, offset + length) of two spans; stops at its first errno value.
template <class Action>
int each_part(const RingSpans& spans, std::uint64_t offset, std::uint64_t length, Action action) {
  for (const std::span<std::byte> span : {spans.first, spans.second}) {
    if (length == 0) break;
    if (offset >= span.size()) {
      offset -= span.size();
      continue;
    }
    const std::size_t bytes = std::min<std::uint64_t>(length, span.size() - offset);
    if (const int error = action(span.subspan(offset, bytes)); error != 0) return error;
    offset = 0;
    length -= bytes;
  }
  return 0;
}

// Calls action(address, place, bytes) for the parts of a list that cover [offset, offset + length) of its
// bytes; `place` counts from 0.
template <class List, class Action>
int each_range(const List& list, std::uint64_t offset, std::uint64_t length, Action action) {
  std::uint64_t place = 0;
  for (const auto& item : list) {
    if (length == 0) break;
    const std::uint64_t size = item.length;
    if (offset >= size) {
      offset -= size;
      continue;
    }
    const std::uint64_t bytes = std::min(length, size - offset);
    if (const int error = action(item, offset, place, bytes); error != 0) return error;
    offset = 0;
    place += bytes;
    length -= bytes;
  }
  return length == 0 ? 0 : EINVAL;
}

int pull_to_device(const Link& link, std::uint64_t remote, const RegionAccess& to, std::uint64_t place,
                   std::uint64_t length) {
  thread_local std::vector<std::byte> bounce(bounce_bytes);
  for (std::uint64_t done = 0; done < length;) {
    const std::size_t bytes = std::min<std::uint64_t>(length - done, bounce.size());
    if (const int error = link.pull(remote + done, bounce.data(), bytes); error != 0) return error;
    if (const int error = to.memory->write(to.address + place + done, {bounce.data(), bytes}); error != 0)
      return error;
    done += bytes;
  }
  return 0;
}

}  // namespace

std::size_t copy_segments(const RingSpans& payload, const FrameHeader& header,
                          std::array<Segment, max_segments>& segments) {
  const std::size_t count = std::min(header.payload_bytes / sizeof(Segment), segments.size());
  std::array<std::byte, sizeof segments> bytes;
  const std::size_t used = count * sizeof(Segment);
  const std::size_t in_first = std::min(used, payload.first.size());
  std::memcpy(bytes.data(), payload.first.data(), in_first);
  if (used > in_first) std::memcpy(bytes.data() + in_first, payload.second.data(), used - in_first);
  std::memcpy(segments.data(), bytes.data(), used);
  return count;
}

std::uint64_t Source::size() const {
  if (link == nullptr) return payload.first.size() + payload.second.size();
  std::uint64_t sum = 0;
  for (const Segment& segment : segments) sum += segment.length;
  return sum;
}

int deliver(const Source& from, std::uint64_t offset, const RegionAccess& to, std::uint64_t length) {
  if (from.link == nullptr) {
    std::uint64_t place = 0;
    return each_part(from.payload, offset, length, [&](std::span<const std::byte> part) {
      if (to.memory->on_host()) {
        dma_copy(reinterpret_cast<void*>(to.address + place), part.data(), part.size());
      } else if (const int error = to.memory->write(to.address + place, part); error != 0) {
        return error;
      }
      place += part.size();
      return 0;
    });
  }
  return each_range(
      from.segments, offset, length,
      [&](const Segment& segment, std::uint64_t skip, std::uint64_t place, std::uint64_t bytes) {
        const std::uint64_t remote = segment.address + skip;
        if (!to.memory->on_host()) return pull_to_device(*from.link, remote, to, place, bytes);
        return from.link->pull(remote, reinterpret_cast<void*>(to.address + place), bytes);
      });
}

std::uint64_t SegmentList::length() const {
  std::uint64_t sum = 0;
  for (const ibv_sge& segment : segments) sum += segment.length;
  return sum;
}

bool SegmentList::allows(std::uint64_t bytes, int access) const {
  return each_range(segments, 0, bytes,
                    [&](const ibv_sge& segment, std::uint64_t, std::uint64_t, std::uint64_t used) {
                      return regions.local(segment.lkey, domain, segment.addr, used, access) ? 0 : EACCES;
                    }) == 0;
}

int SegmentList::gather(std::uint64_t offset, const RingSpans& to) const {
  const std::uint64_t length = to.first.size() + to.second.size();
  return each_range(
      segments, offset, length,
      [&](const ibv_sge& segment, std::uint64_t skip, std::uint64_t place, std::uint64_t bytes) {
        const RegionAccess access = regions.local(segment.lkey, domain, segment.addr + skip, bytes, 0);
        if (!access) return EACCES;
        std::uint64_t address = access.address;
        return each_part(to, place, bytes, [&](std::span<std::byte> part) {
          const std::uint64_t from = address;
          address += part.size();
          if (!access.memory->on_host()) return access.memory->read(from, part);
          dma_copy(part.data(), reinterpret_cast<const void*>(from), part.size());
          return 0;
        });
      });
}

int SegmentList::scatter(std::uint64_t offset, const Source& from, std::uint64_t from_offset,
                         std::uint64_t length) const {
  return each_range(
      segments, offset, length,
      [&](const ibv_sge& segment, std::uint64_t skip, std::uint64_t place, std::uint64_t bytes) {
        const RegionAccess access =
            regions.local(segment.lkey, domain, segment.addr + skip, bytes, IBV_ACCESS_LOCAL_WRITE);
        if (!access) return EACCES;
        return deliver(from, from_offset + place, access, bytes);
      });
}

std::size_t SegmentList::host_ranges(std::span<Segment> ranges) const {
  std::size_t count = 0;
  for (const ibv_sge& segment : segments) {
    if (segment.length == 0) continue;
    const RegionAccess access = regions.local(segment.lkey, domain, segment.addr, segment.length, 0);
    if (!access || !access.memory->on_host()) return 0;
    ranges[count++] = {access.address, segment.length};
  }
  return count;
}

}  // namespace gdrbench::softverbs
