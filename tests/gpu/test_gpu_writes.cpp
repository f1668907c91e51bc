#include <gmock/gmock.h>

#include "measure/gpu_writes.hpp"
#include "needs_gpu.hpp"

namespace gdrbench::measure {
namespace {

using testing::AnyOf;

class GpuWritesOfThisMachine : public NeedsGpu {};

TEST_F(GpuWritesOfThisMachine, NeedAFlushOnlyWhereTheyAreNotOrdered) {
  const nlohmann::json described = GpuWrites(0).describe();
  EXPECT_THAT(described.at("writes_ordering"), AnyOf("none", "owner", "all_devices"));
  EXPECT_EQ(described.at("flush_needed"), described.at("writes_ordering") == "none");
  EXPECT_TRUE(described.at("flush_us").is_null()) << "before it was timed";
  EXPECT_NE(described.at("no_flush_reason"), "");
}

TEST_F(GpuWritesOfThisMachine, HaveATimedFlushOrTheReasonWhyNot) {
  GpuWrites writes(0);
  writes.time_flush();
  const nlohmann::json described = writes.describe();
  if (described.at("flush_us").is_null()) {
    EXPECT_THAT(described.at("no_flush_reason").get<std::string>(), testing::HasSubstr("no flush"));
    return;
  }
  EXPECT_TRUE(described.at("no_flush_reason").is_null());
  EXPECT_GT(described.at("flush_us").at("median"), 0.0);
  EXPECT_GE(described.at("flush_us").at("max"), described.at("flush_us").at("median"));
}

}  // namespace
}  // namespace gdrbench::measure
