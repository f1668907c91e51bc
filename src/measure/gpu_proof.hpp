#pragma once

#include <optional>
#include <string>

#include "cuda/device.hpp"
#include "gdrbench/case.hpp"
#include "gdrbench/path_proof.hpp"

/// What proves how a NIC works on GPU memory.
namespace gdrbench::measure {

/// Into the proof: where the case's GPU sits, seen from the RDMA device of the proof; no distance for a
/// software device, nothing for payload in host memory.
void add_gpu_nic(PathProof& proof, const Case& c);

/// How what a NIC writes to a GPU's memory becomes visible to that GPU, and what asking for it costs: part of
/// the proof of a case whose payload the NIC works on in GPU memory.
class GpuWrites {
 public:
  /// Throws Unavailable or CudaError.
  explicit GpuWrites(int gpu);

  /// Times the flush on its own, needed or not. Not to be called while anything is measured.
  void time_flush();

  GpuWritesProof describe() const;

 private:
  struct Times {
    double median_us = 0;
    double max_us = 0;
  };
  int gpu_;
  cuda::WriteOrdering ordering_;
  std::optional<Times> times_;
  std::string no_times_reason_ = "it is timed after a run";
};

}  // namespace gdrbench::measure
