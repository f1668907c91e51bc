#pragma once

#include <chrono>
#include <vector>

#include "doctor/answers.hpp"

namespace gdrbench::doctor {

/// Registers 64 KiB of host memory with each device that could be opened, and of each GPU's memory as dma-buf
/// and as peer memory, in child processes. `patience` is for each. Throws SystemError where no process can be
/// made, Interrupted.
std::vector<ProbeAnswer> probe_registrations(const Answers& answers, std::chrono::milliseconds patience);

}  // namespace gdrbench::doctor
