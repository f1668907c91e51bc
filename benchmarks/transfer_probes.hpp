#pragma once

#include <string>
#include <vector>

#include "benchmarks/options.hpp"
#include "gdrbench/session.hpp"

namespace gdrbench::benchmarks {

/// A message of 4 KiB, sent and verified.
struct TransferProbe {
  Path path;
  Op op;
  Direction direction;
};

/// tcp, rdma and gdr; write and read; forward and reverse.
std::vector<TransferProbe> transfer_probes();

/// What a probe used.
struct TransferOutcome {
  std::string device;  ///< RDMA device of the initiator; empty for tcp
  std::string gpu;     ///< PCI address of its GPU; empty where host memory stands in for GPU memory
};

/// Over the devices that compare would use. Throws Unavailable with the reason where the path cannot run,
/// Error where the transfer or its verification fails, PeerLost, Interrupted.
TransferOutcome run_transfer(Session& session, const EndInfo& this_end, const TransferProbe& probe,
                             const MeasureOptions& options);

}  // namespace gdrbench::benchmarks
