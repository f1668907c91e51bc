#pragma once

#include <chrono>
#include <ctime>

namespace gdrbench {

/// CLOCK_MONOTONIC_RAW, microseconds: not slewed by NTP.
inline double now_us() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

/// When something must be over.
using Deadline = std::chrono::steady_clock::time_point;
inline Deadline after(std::chrono::milliseconds span) {
  return std::chrono::steady_clock::now() + span;
}

}  // namespace gdrbench
