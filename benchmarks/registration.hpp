#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmarks/measurement.hpp"

namespace gdrbench::benchmarks {

struct RegistrationOptions {
  std::vector<std::uint64_t> sizes;  ///< bytes; empty: 4 KiB to 1 GiB, each four times the last
  std::string device;                ///< RDMA device; empty: none, with `no_device` as the reason
  std::string no_device;
  int gpu = 0;
};

/// Registering memory with the RDMA device and deregistering it, by kind of memory, way of registering and
/// size; and pinning host memory for the GPU. Beside both, the copy that registering could save: by the CPU
/// for host memory, by the GPU's copy engine to pinned host memory for GPU memory.
std::vector<LocalCase> registration_cases(const RegistrationOptions& options);

/// For each kind: from which size on a registration for one use takes less than the copy; by medians.
std::vector<LocalCrossover> registration_crossovers(const std::vector<LocalResult>& results);

}  // namespace gdrbench::benchmarks
