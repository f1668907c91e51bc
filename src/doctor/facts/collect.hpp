#pragma once

#include <chrono>

#include "doctor/facts/facts.hpp"

namespace gdrbench::doctor {

struct CollectOptions {
  std::chrono::milliseconds timeout{20'000};  ///< for each call of a driver
};

/// Queries CUDA, libibverbs, the kernel log and this process's limits. Drivers are called in child processes;
/// one that crashes or hangs becomes a ProbeResult "ask cuda" or "ask verbs". Throws SystemError where no
/// process can be created, Interrupted.
Answers collect_answers(const CollectOptions& options);

}  // namespace gdrbench::doctor
