// What a hostile remote can send or leave in shared memory: the reader ends each time, reads nothing outside
// the ring, and passes on nothing but well-formed frames.
//
// Input: one byte of mode (bit 0: shared rings; bit 1: what lies in them is repeated up to the end), then
// - socket: one byte, the length of the pieces that the rest is sent in (0: all at once), and the stream;
// - shared: two positions of the producer and one of the consumer (8 bytes each), and what lies in the ring.

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>

#include "link/link.hpp"

namespace gdrbench::softverbs {
namespace {

using Bytes = std::span<const std::uint8_t>;

void require(bool condition) {
  if (!condition) std::abort();
}

EventLoop& loop() {
  static EventLoop only;
  return only;
}

void check_span(std::span<std::byte> span, const RingMemory* memory) {
  static volatile unsigned sum;
  for (const std::byte byte : span) sum = sum + unsigned(byte);
  if (memory == nullptr || span.empty()) return;
  require(span.data() >= memory->data && span.data() + span.size() <= memory->data + ring_bytes);
}

/// `memory`: the ring that the link reads, where it is known.
void walk(Link& link, const RingMemory* memory) {
  std::size_t bytes = 0;
  while (const FrameHeader* const header = link.next()) {
    require(!why_malformed(*header));
    require(header->payload_bytes <= max_frame_payload_bytes);
    bytes += frame_bytes(header->payload_bytes);
    require(memory == nullptr || bytes <= ring_bytes);
    const RingSpans payload = link.payload();
    require(payload.first.size() + payload.second.size() == header->payload_bytes);
    check_span(payload.first, memory);
    check_span(payload.second, memory);
    link.consume();
  }
  link.release();
  if (!link.broken()) link.arm();
}

Link::Parts parts_of(Descriptor socket, std::unique_ptr<RingPair> rings, bool shares_rings) {
  Link::Parts parts;
  parts.socket = std::move(socket);
  parts.rings = std::move(rings);
  parts.shares_rings = shares_rings;
  return parts;
}

struct Sockets {
  Sockets() {
    int ends[2];
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    ours = Descriptor(ends[0]);
    remotes = Descriptor(ends[1]);
  }
  Descriptor ours, remotes;
};

void over_socket(Bytes input) {
  Sockets sockets;
  Link link(loop(), parts_of(std::move(sockets.ours), RingPair::make_private(), false));
  const std::size_t piece = input.empty() || input[0] == 0 ? ring_bytes : input[0];
  for (Bytes rest = input.empty() ? input : input.subspan(1); !rest.empty();) {
    const ssize_t sent =
        send(sockets.remotes.get(), rest.data(), std::min(piece, rest.size()), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) rest = rest.subspan(std::size_t(sent));
    walk(link, nullptr);
    if (sent < 0 && link.broken()) return;
  }
  sockets.remotes = Descriptor();
  walk(link, nullptr);
  require(link.broken());
}

void over_shared_rings(Bytes input, bool repeat) {
  std::uint64_t positions[3];
  if (input.size() < sizeof positions) return;
  std::memcpy(positions, input.data(), sizeof positions);
  input = input.subspan(sizeof positions);

  const auto remotes = RingPair::offer(0);
  auto ours = RingPair::map(Descriptor(dup(remotes->descriptor())), 0);
  const RingMemory& read = ours->incoming();
  Sockets sockets;
  Link link(loop(), parts_of(std::move(sockets.ours), std::move(ours), true));

  const std::size_t period = frame_bytes(input.size()) - sizeof(FrameHeader);
  for (std::size_t at = 0; at < ring_bytes && !input.empty(); at += period) {
    std::memcpy(remotes->outgoing().data + at, input.data(), std::min(input.size(), ring_bytes - at));
    if (!repeat) break;
  }
  remotes->outgoing().produced = positions[0];
  walk(link, &read);
  remotes->outgoing().produced = positions[1];
  walk(link, &read);

  const FrameHeader header{.payload_bytes = max_frame_payload_bytes, .type = FrameType::send};
  for (std::size_t frames = 0; link.fits(header.payload_bytes); ++frames) {
    require(frames <= ring_bytes / frame_bytes(header.payload_bytes));
    const RingSpans room = link.add(header);
    require(room.first.size() + room.second.size() == header.payload_bytes);
  }
  link.flush();
  remotes->incoming().consumed = positions[2];
  if (link.fits(0)) link.add(FrameHeader{.type = FrameType::ack});
  link.flush();
}

}  // namespace
}  // namespace gdrbench::softverbs

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gdrbench::softverbs;
  if (size == 0) return 0;
  const Bytes input(data + 1, size - 1);
  if (data[0] & 1) {
    over_shared_rings(input, data[0] & 2);
  } else {
    over_socket(input);
  }
  return 0;
}
