#pragma once

#include <cstddef>
#include <cstdint>

/// What two software NICs say to each other: frames of a 64-byte header and a payload, in the byte order of
/// both ends (the handshake refuses a remote of another). A connection carries the requests of one queue pair
/// in one direction and the answers to them in the other.
namespace gdrbench::softverbs {

enum class FrameType : std::uint8_t {
  // Requests.
  send = 1,
  write,
  read,
  fetch_add,
  compare_swap,
  datagram,  ///< UD; answered by nothing
  // Answers.
  ack,             ///< all messages up to `message` are done
  nak,             ///< `message` failed; `code` is the requester's enum ibv_wc_status
  rnr,             ///< `message` waits for a receive; `code` is the responder's min_rnr_timer
  read_data,       ///< a piece of the data of a read
  read_reference,  ///< where in the responder's memory the data of a read lie
  atomic_result    ///< `operand`: what was there before
};

enum FrameFlag : std::uint8_t {
  frame_has_immediate = 1,
  frame_solicited = 2,
  frame_by_reference = 4,       ///< the payload is a list of Segment, in the sender's memory
  frame_requester_pulls = 8,    ///< read: the requester can fetch from the responder's memory
  frame_waits_for_receive = 16  ///< the requester waits for a receive without end and needs no `rnr`
};

/// Which fields mean something depends on the type; the others are zero.
struct FrameHeader {
  std::uint32_t payload_bytes = 0;  ///< bytes after the header, before padding to a multiple of 64
  FrameType type{};
  std::uint8_t flags = 0;
  std::uint16_t code = 0;
  std::uint32_t message = 0;     ///< number of the message on its connection, from 0; datagram: source QPN
  std::uint32_t immediate = 0;   ///< network byte order, as in ibv_wc
  std::uint32_t key = 0;         ///< rkey; datagram: Q_Key
  std::uint32_t queue_pair = 0;  ///< datagram: destination QPN
  std::uint64_t remote_address = 0;  ///< in the responder's registered memory
  std::uint64_t length = 0;          ///< bytes of the whole message
  std::uint64_t offset = 0;          ///< where in the message the payload lies
  std::uint64_t operand = 0;         ///< what is added, or compared with; atomic_result: what was there
  std::uint64_t swap = 0;
};
static_assert(sizeof(FrameHeader) == 64);

/// A range of the sender's memory (virtual addresses of its process).
struct Segment {
  std::uint64_t address = 0;
  std::uint64_t length = 0;
};

constexpr std::size_t frame_alignment = 64;
constexpr std::size_t max_segments = 16;
constexpr std::size_t max_frame_payload_bytes = std::size_t{128} << 10;
/// The InfiniBand limit of a message.
constexpr std::uint64_t max_message_bytes = std::uint64_t{1} << 31;

/// What a frame occupies in a ring.
constexpr std::size_t frame_bytes(std::size_t payload_bytes) {
  return (sizeof(FrameHeader) + payload_bytes + frame_alignment - 1) / frame_alignment * frame_alignment;
}

/// What is wrong with a header on its own, whatever came before it; null when nothing is. A frame that passes
/// fits a ring, names a known type, has no unknown flag, and keeps its payload within its message.
const char* why_malformed(const FrameHeader& header);

}  // namespace gdrbench::softverbs
