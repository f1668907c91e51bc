#include <gtest/gtest.h>

#include "path/staging_layout.hpp"

namespace gdrbench::path {
namespace {

StagingLayout layout(Path path, std::uint64_t size_bytes, std::uint64_t chunk_bytes,
                     Staging variant = Staging::pipelined, MemoryKind memory = MemoryKind::cuda) {
  Case c;
  c.path = path;
  c.memory = memory;
  c.size_bytes = size_bytes;
  c.staging.variant = variant;
  c.staging.chunk_bytes = chunk_bytes;
  return staging_layout(c);
}

TEST(StagingLayout, OfASocketFitsASecondLevelCacheWhereTheCpuCopies) {
  const StagingLayout tcp = layout(Path::tcp, 64 << 20, 256 << 10, Staging::pipelined, MemoryKind::host);
  EXPECT_EQ(tcp.incoming_slots, 4U);
  EXPECT_EQ(tcp.outgoing_slots, 4U);
}

TEST(StagingLayout, OfAQueuePairCoversCopyAndWire) {
  EXPECT_EQ(layout(Path::rdma, 64 << 20, 1 << 20).incoming_slots, 16U);
}

TEST(StagingLayout, OfASocketHoldsTwoLongChunksOfAGpu) {
  const StagingLayout tcp = layout(Path::tcp, 64 << 20, 2 << 20);
  EXPECT_EQ(tcp.incoming_slots, 2U);
  EXPECT_EQ(tcp.outgoing_slots, 2U);
  EXPECT_EQ(layout(Path::tcp, 64 << 20, 256 << 10).incoming_slots, 16U);
}

TEST(StagingLayout, HasEnoughChunksToOverlapWhateverTheirSize) {
  EXPECT_EQ(layout(Path::tcp, 64 << 20, 4 << 20).incoming_slots, 2U);
  EXPECT_EQ(layout(Path::tcp, 64 << 20, 4 << 20, Staging::pipelined, MemoryKind::host).incoming_slots, 4U);
  EXPECT_EQ(layout(Path::rdma, 64 << 20, 8 << 20).incoming_slots, 4U);
}

TEST(StagingLayout, OfPlainStagingHoldsOneOutgoingMessage) {
  const StagingLayout plain = layout(Path::tcp, 1 << 20, 256 << 10, Staging::plain);
  EXPECT_EQ(plain.outgoing_slots, 1U);
  EXPECT_EQ(plain.incoming_slots, 16U);
}

}  // namespace
}  // namespace gdrbench::path
