#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "memory/staging_choice.hpp"

namespace gdrbench::memory {
namespace {

using ::testing::HasSubstr;

const StagingCalibration measured{
    .small = {{64, {{CopyEngine::copy_engine, 14}, {CopyEngine::kernel, 7}, {CopyEngine::gdrcopy, 2}}},
              {4096, {{CopyEngine::copy_engine, 15}, {CopyEngine::kernel, 9}, {CopyEngine::gdrcopy, 80}}},
              {16384, {{CopyEngine::copy_engine, 16}, {CopyEngine::kernel, 17}}}},
    .large = {{.chunk_bytes = 256 << 10, .bytes_per_second = 36e9},
              {.chunk_bytes = 1 << 20, .bytes_per_second = 49e9},
              {.chunk_bytes = 2 << 20, .bytes_per_second = 52e9},
              {.chunk_bytes = 4 << 20, .bytes_per_second = 53e9}}};

TEST(StagingChoice, IsTheEngineThatWasFasterAtThatSizeAndSaysBoth) {
  EXPECT_EQ(choose_engine(measured, 8).engine, CopyEngine::gdrcopy);
  const EngineChoice at_4k = choose_engine(measured, 4096);
  EXPECT_EQ(at_4k.engine, CopyEngine::kernel);
  EXPECT_THAT(at_4k.reason, HasSubstr("copy_engine 15.0 us, kernel 9.0 us, gdrcopy 80.0 us"));
}

TEST(StagingChoice, BetweenTwoMeasuredSizesTheLargerDecides) {
  EXPECT_EQ(choose_engine(measured, 4097).engine, CopyEngine::copy_engine);
  EXPECT_EQ(choose_engine(measured, 16385).engine, CopyEngine::copy_engine) << "larger than was measured";
}

TEST(StagingChoice, IsTheSmallestChunkThatReachesTheShare) {
  EXPECT_EQ(choose_chunk_bytes(measured, 0.85), 1U << 20);
  EXPECT_EQ(choose_chunk_bytes(measured, 0.97), 2U << 20);
  EXPECT_EQ(choose_chunk_bytes(measured, 1.0), 4U << 20);
}

const StagingUse on_gpu{.payload = MemoryKind::cuda};

// None of these needs a measurement, and so no GPU.
TEST(StagingChoice, OfWhatWasAskedForIsThat) {
  const StagingUse use{.payload = MemoryKind::cuda, .shares_gpu = true};
  EXPECT_EQ(choose_engine(use, {.engine = CopyEngine::kernel}, 8).engine, CopyEngine::kernel);
}

TEST(StagingChoice, IsNoKernelWhereKernelsTakeTurns) {
  const EngineChoice choice = choose_engine({.payload = MemoryKind::cuda, .shares_gpu = true}, {}, 8);
  EXPECT_EQ(choice.engine, CopyEngine::copy_engine);
  EXPECT_THAT(choice.reason, HasSubstr("one GPU"));
}

TEST(StagingChoice, IsNoKernelForManyQueuePairsPlainStagingOrLargePieces) {
  const StagingUse many{.payload = MemoryKind::cuda, .queue_pairs = 9};
  EXPECT_EQ(choose_engine(many, {}, 8).engine, CopyEngine::copy_engine);
  EXPECT_EQ(choose_engine(on_gpu, {.variant = Staging::pageable}, 8).engine, CopyEngine::copy_engine);
  EXPECT_EQ(choose_engine(on_gpu, {}, 1 << 20).engine, CopyEngine::copy_engine);
}

TEST(StagingChoice, IsLongChunksForSocketsUntilManyShareTheStagingBuffer) {
  StagingUse sockets{.payload = MemoryKind::cuda, .cpu_sends = true};
  EXPECT_EQ(choose_chunk_bytes(sockets), 2U << 20);
  sockets.queue_pairs = 64;
  EXPECT_EQ(choose_chunk_bytes(sockets), 512U << 10);
  sockets.queue_pairs = 1024;
  EXPECT_EQ(choose_chunk_bytes(sockets), 64U << 10);
}

TEST(StagingChoice, IsAPartOfATimedMessage) {
  StagingUse timed{
      .payload = MemoryKind::cuda, .cpu_sends = true, .is_latency_critical = true, .message_bytes = 1 << 20};
  EXPECT_EQ(choose_chunk_bytes(timed), 256U << 10);
  timed.message_bytes = 8;
  EXPECT_EQ(choose_chunk_bytes(timed), 64U << 10);
}

TEST(StagingChoice, IsTheCpuInHostMemory) {
  EXPECT_EQ(choose_engine(StagingUse{}, {}, 8).name(), "cpu");
  EXPECT_EQ(choose_chunk_bytes(StagingUse{}), StagingOptions{}.chunk_bytes);
}

}  // namespace
}  // namespace gdrbench::memory
