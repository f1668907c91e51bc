#pragma once

#include <cstdint>

#include "base/system.hpp"
#include "gdrbench/run_result.hpp"

namespace gdrbench::path {

/// The time during which at least one piece was in a stage. The clock is read only when the first one enters
/// and the last one leaves.
class StageClock {
 public:
  void reset() {
    busy_us_ = 0;
    since_us_ = now_us();
  }
  void begin() {
    if (in_flight_++ == 0) since_us_ = now_us();
  }
  void end(std::uint64_t pieces) {
    if (pieces == 0) return;
    in_flight_ -= pieces;
    if (in_flight_ == 0) busy_us_ += now_us() - since_us_;
  }
  double seconds() const { return busy_us_ * 1e-6; }

 private:
  std::uint64_t in_flight_ = 0;
  double since_us_ = 0, busy_us_ = 0;
};

/// The stages of all queue pairs of a staged path at one end.
struct Stages {
  StageClock gpu_to_host, wire, host_to_gpu;

  void reset() {
    gpu_to_host.reset();
    wire.reset();
    host_to_gpu.reset();
  }
  StageTimes times() const {
    return {.gpu_to_host_s = gpu_to_host.seconds(),
            .wire_s = wire.seconds(),
            .host_to_gpu_s = host_to_gpu.seconds()};
  }
};

}  // namespace gdrbench::path
