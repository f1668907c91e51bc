#pragma once

#include "gdrbench/case.hpp"
#include "gdrbench/path_proof.hpp"

namespace gdrbench::measure {

/// Into the proof: where the case's GPU sits, seen from the RDMA device of the proof; no distance for a
/// software device, nothing for payload in host memory.
void add_gpu_nic(PathProof& proof, const Case& c);

}  // namespace gdrbench::measure
