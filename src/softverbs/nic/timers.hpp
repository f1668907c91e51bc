#pragma once

#include <array>
#include <chrono>
#include <cstdint>

/// Times and numbers that queue-pair attributes encode.
namespace gdrbench::softverbs {

/// ibv_qp_attr::rnr_retry: the requester waits for a receive for ever.
constexpr std::uint8_t rnr_without_end = 7;

/// ibv_qp_attr::timeout: 4.096 µs × 2^code; 0 means never, which here is a day (InfiniBand
/// specification 9.7.6.1.3).
constexpr std::chrono::nanoseconds ack_timeout(std::uint8_t code) {
  if (code == 0) return std::chrono::hours(24);
  return std::chrono::nanoseconds(4096) * (std::int64_t{1} << (code & 31));
}

/// ibv_qp_attr::min_rnr_timer (InfiniBand specification, table 45).
constexpr std::chrono::microseconds rnr_delay(std::uint8_t code) {
  constexpr std::array<int, 32> microseconds = {655360, 10,    20,    30,     40,     60,     80,     120,
                                                160,    240,   320,   480,    640,    960,    1280,   1920,
                                                2560,   3840,  5120,  7680,   10240,  15360,  20480,  30720,
                                                40960,  61440, 81920, 122880, 163840, 245760, 327680, 491520};
  return std::chrono::microseconds(microseconds[code & 31]);
}

}  // namespace gdrbench::softverbs
