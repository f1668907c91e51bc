#pragma once

#include <gtest/gtest.h>

#include "gdrbench/memory.hpp"

namespace gdrbench {

/// Skips the tests of a suite, with the reason, where there is no GPU.
class NeedsGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!summary_.unavailable.empty()) GTEST_SKIP() << summary_.unavailable;
  }
  const GpuSummary summary_ = gpu_summary();
};

/// The same for each kind of GPU memory.
class NeedsGpuMemory : public NeedsGpu, public ::testing::WithParamInterface<MemoryKind> {};

inline constexpr MemoryKind gpu_memory_kinds[] = {MemoryKind::cuda, MemoryKind::cuda_vmm};

inline VerbsOptions registering_by(RegisterBy registration) {
  VerbsOptions options;
  options.registration = registration;
  return options;
}

inline std::string kind_name(const ::testing::TestParamInfo<MemoryKind>& info) {
  return std::string(to_string(info.param));
}

}  // namespace gdrbench
