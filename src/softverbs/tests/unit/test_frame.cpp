#include <gtest/gtest.h>

#include <string>

#include "link/frame.hpp"

namespace gdrbench::softverbs {
namespace {

FrameHeader frame(FrameType type, std::uint32_t payload_bytes = 0, std::uint64_t length = 0) {
  FrameHeader header;
  header.type = type;
  header.payload_bytes = payload_bytes;
  header.length = length;
  return header;
}

std::string fault_of(const FrameHeader& header) {
  const char* const why = why_malformed(header);
  return why == nullptr ? "" : why;
}

TEST(SoftverbsFrame, EveryKnownTypeIsTakenWithoutPayload) {
  for (int type = int(FrameType::send); type <= int(FrameType::atomic_result); ++type) {
    EXPECT_EQ(fault_of(frame(FrameType(type))), "") << type;
  }
}

TEST(SoftverbsFrame, UnknownTypesAreRefused) {
  EXPECT_EQ(fault_of(frame(FrameType(0))), "frame of unknown type");
  EXPECT_EQ(fault_of(frame(FrameType(int(FrameType::atomic_result) + 1))), "frame of unknown type");
  EXPECT_EQ(fault_of(frame(FrameType(255))), "frame of unknown type");
}

TEST(SoftverbsFrame, UnknownFlagsAreRefused) {
  FrameHeader header = frame(FrameType::send);
  header.flags = frame_has_immediate | frame_solicited;
  EXPECT_EQ(fault_of(header), "");
  header.flags = 1U << 5;
  EXPECT_EQ(fault_of(header), "frame with unknown flags");
}

TEST(SoftverbsFrame, OnlyTypesThatCarryDataHavePayload) {
  for (const FrameType type :
       {FrameType::send, FrameType::write, FrameType::datagram, FrameType::read_data}) {
    EXPECT_EQ(fault_of(frame(type, 8, 8)), "") << int(type);
  }
  for (const FrameType type : {FrameType::read, FrameType::fetch_add, FrameType::compare_swap, FrameType::ack,
                               FrameType::nak, FrameType::rnr, FrameType::atomic_result}) {
    EXPECT_EQ(fault_of(frame(type, 8, 8)), "payload in a frame that has none") << int(type);
  }
}

TEST(SoftverbsFrame, PayloadStaysWithinItsMessage) {
  FrameHeader header = frame(FrameType::write, 64, 100);
  header.offset = 36;
  EXPECT_EQ(fault_of(header), "");
  header.offset = 37;
  EXPECT_EQ(fault_of(header), "payload beyond the end of its message");
  header.offset = 101;
  EXPECT_EQ(fault_of(header), "frame that begins behind the end of its message");
  header.offset = ~std::uint64_t{0};  // offset + payload_bytes wraps
  EXPECT_EQ(fault_of(header), "frame that begins behind the end of its message");
}

TEST(SoftverbsFrame, SizesHaveLimits) {
  EXPECT_EQ(fault_of(frame(FrameType::send, max_frame_payload_bytes, max_message_bytes)), "");
  EXPECT_EQ(fault_of(frame(FrameType::send, max_frame_payload_bytes + 1, max_message_bytes)),
            "frame longer than a ring takes");
  EXPECT_EQ(fault_of(frame(FrameType::read, 0, max_message_bytes + 1)), "message of more than 2 GiB");
}

TEST(SoftverbsFrame, SegmentListsAreWhole) {
  for (const FrameType type : {FrameType::send, FrameType::read_reference}) {
    FrameHeader header = frame(type, sizeof(Segment), max_message_bytes);
    header.flags = frame_by_reference;
    EXPECT_EQ(fault_of(header), "");
    header.payload_bytes = sizeof(Segment) + 8;
    EXPECT_EQ(fault_of(header), "list of segments that ends within one");
    header.payload_bytes = max_segments * sizeof(Segment);
    EXPECT_EQ(fault_of(header), "");
    header.payload_bytes = (max_segments + 1) * sizeof(Segment);
    EXPECT_EQ(fault_of(header), "too many segments");
    header.payload_bytes = 0;
    EXPECT_EQ(fault_of(header), "no segments for a message that has data");
    header.length = 0;
    EXPECT_EQ(fault_of(header), "");
  }
}

TEST(SoftverbsFrame, FramesOccupyMultiplesOf64Bytes) {
  EXPECT_EQ(frame_bytes(0), 64u);
  EXPECT_EQ(frame_bytes(1), 128u);
  EXPECT_EQ(frame_bytes(64), 128u);
  EXPECT_EQ(frame_bytes(65), 192u);
}

}  // namespace
}  // namespace gdrbench::softverbs
