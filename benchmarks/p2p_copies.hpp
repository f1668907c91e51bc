#pragma once

#include <cstdint>
#include <vector>

#include "benchmarks/measurement.hpp"

namespace gdrbench::benchmarks {

struct P2pCopyOptions {
  int gpu = 0;
  int remote_gpu = 0;
  std::vector<std::uint64_t> sizes;  ///< bytes; empty: 8 B, 4 KiB, 64 KiB, 1 MiB, 8 MiB, 64 MiB
};

/// cudaMemcpyPeerAsync within this process, what a program without a network would do: many copies one after
/// another (`back to back`) and one that is waited for (`single`), verified.
std::vector<LocalCase> p2p_copy_cases(const P2pCopyOptions& options);

}  // namespace gdrbench::benchmarks
