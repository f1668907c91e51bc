#include <gmock/gmock.h>

#include "measure/gpu_proof.hpp"
#include "needs_gpu.hpp"

namespace gdrbench::measure {
namespace {

using testing::AnyOf;

class GpuWritesOfThisMachine : public NeedsGpu {};

TEST_F(GpuWritesOfThisMachine, NeedAFlushOnlyWhereTheyAreNotOrdered) {
  const GpuWritesProof proof = GpuWrites(0).describe();
  EXPECT_THAT(proof.writes_ordering, AnyOf("none", "owner", "all_devices"));
  EXPECT_EQ(proof.flush_needed, proof.writes_ordering == "none");
  EXPECT_FALSE(proof.flush_us) << "before it was timed";
  EXPECT_NE(proof.no_flush_reason.value_or(""), "");
}

TEST_F(GpuWritesOfThisMachine, HaveATimedFlushOrTheReasonWhyNot) {
  GpuWrites writes(0);
  writes.time_flush();
  const GpuWritesProof proof = writes.describe();
  if (!proof.flush_us) {
    EXPECT_THAT(proof.no_flush_reason.value_or(""), testing::HasSubstr("no flush"));
    return;
  }
  EXPECT_FALSE(proof.no_flush_reason);
  EXPECT_GT(proof.flush_us->median, 0.0);
  EXPECT_GE(proof.flush_us->max, proof.flush_us->median);
}

}  // namespace
}  // namespace gdrbench::measure
