#pragma once

#include <string>
#include <vector>

#include "benchmarks/options.hpp"
#include "doctor/answers.hpp"
#include "gdrbench/session.hpp"

namespace gdrbench::cli {

struct TransferRequest {
  bool loopback = false;  ///< both ends here; `connect` does not count then
  ConnectOptions connect;
  benchmarks::MeasureOptions measure;
};

struct TransferAnswers {
  std::vector<doctor::ProbeAnswer> probes;
  std::string peer_lost;  ///< how the other end was lost; empty where it was not
};

/// 4 KiB over tcp, rdma and gdr, by write and read, each way, in child processes. Throws SystemError where no
/// process can be made, Interrupted.
TransferAnswers probe_transfers(const TransferRequest& request);

}  // namespace gdrbench::cli
