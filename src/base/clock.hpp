#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>

namespace gdrbench {

/// CLOCK_MONOTONIC_RAW, nanoseconds: not slewed by NTP.
inline std::int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}
/// The same in microseconds.
inline double now_us() {
  return static_cast<double>(now_ns()) * 1e-3;
}

/// When something must be over.
using Deadline = std::chrono::steady_clock::time_point;
inline Deadline after(std::chrono::milliseconds span) {
  return std::chrono::steady_clock::now() + span;
}

}  // namespace gdrbench
