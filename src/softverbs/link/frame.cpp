#include "link/frame.hpp"

namespace gdrbench::softverbs {
namespace {

constexpr std::uint8_t known_flags = frame_has_immediate | frame_solicited | frame_by_reference |
                                     frame_requester_pulls | frame_waits_for_receive;

bool is_known(FrameType type) {
  return type >= FrameType::send && type <= FrameType::atomic_result;
}

bool carries_payload(FrameType type) {
  switch (type) {
    case FrameType::send:
    case FrameType::write:
    case FrameType::datagram:
    case FrameType::read_data:
    case FrameType::read_reference:
      return true;
    default:
      return false;
  }
}

}  // namespace

const char* why_malformed(const FrameHeader& header) {
  if (!is_known(header.type)) return "frame of unknown type";
  if ((header.flags & ~known_flags) != 0) return "frame with unknown flags";
  if (header.payload_bytes > max_frame_payload_bytes) return "frame longer than a ring takes";
  if (header.length > max_message_bytes) return "message of more than 2 GiB";
  if (header.offset > header.length) return "frame that begins behind the end of its message";
  if (!carries_payload(header.type)) {
    return header.payload_bytes == 0 ? nullptr : "payload in a frame that has none";
  }
  const bool by_reference =
      (header.flags & frame_by_reference) != 0 || header.type == FrameType::read_reference;
  if (!by_reference) {
    return header.payload_bytes <= header.length - header.offset ? nullptr
                                                                 : "payload beyond the end of its message";
  }
  if (header.payload_bytes % sizeof(Segment) != 0) return "list of segments that ends within one";
  if (header.payload_bytes > max_segments * sizeof(Segment)) return "too many segments";
  if (header.payload_bytes == 0 && header.length != 0) return "no segments for a message that has data";
  return nullptr;
}

}  // namespace gdrbench::softverbs
