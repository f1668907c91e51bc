#pragma once

#include <chrono>

#include "doctor/answers.hpp"

namespace gdrbench::doctor {

struct CollectOptions {
  std::chrono::milliseconds patience{20'000};  ///< with one answer of a driver
};

/// Asks CUDA, libibverbs, the kernel's log and this process's limits. Drivers are asked in child processes;
/// one that crashes or hangs is told by a ProbeAnswer "ask cuda" or "ask verbs". Throws SystemError where no
/// process can be made, Interrupted.
Answers collect_answers(const CollectOptions& options);

}  // namespace gdrbench::doctor
