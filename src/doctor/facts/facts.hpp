#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "topology/machine.hpp"
#include "topology/root.hpp"

namespace gdrbench::doctor {

/// What CUDA says of a GPU; a member is absent where the driver did not answer.
struct GpuAnswer {
  int index = 0;            ///< CUDA's
  std::string pci_address;  ///< "0000:bb:00.0"
  std::string name;
  std::optional<bool> gpu_direct_rdma;  ///< CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED
  std::optional<bool> dmabuf;           ///< CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED
  std::optional<bool> vmm_rdma;         ///< CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED
  std::optional<int> writes_ordering;   ///< cudaGPUDirectRDMAWritesOrdering: 0, 100, 200
};

/// What libibverbs says of a port.
struct PortAnswer {
  int number = 1;
  std::string state;       ///< "ACTIVE", "DOWN", "INIT", "ARMED"
  std::string link_layer;  ///< "Ethernet", "InfiniBand"
  int active_mtu = 0;      ///< bytes
  int max_mtu = 0;         ///< bytes
};

/// What libibverbs says of a device that it lists.
struct RdmaAnswer {
  std::string device;               ///< "mlx5_0"
  std::string fabric;               ///< "hardware", "soft-roce", "softverbs"
  std::optional<int> open_errno;    ///< of ibv_open_device; 0: opened
  std::optional<int> dmabuf_probe;  ///< errno of ibv_reg_dmabuf_mr with fd −1
  std::vector<PortAnswer> ports;
};

/// Something that was tried, in a child process.
struct ProbeResult {
  std::string
      what;  ///< "register host", "register cuda dmabuf", "register cuda peermem", "transfer host write" …
  std::string device;   ///< RDMA device
  std::string gpu;      ///< PCI address; empty for host memory
  std::string outcome;  ///< "passed", "failed", "crashed", "timed out", "not run"
  int errno_value = 0;  ///< 0 where none came back
  int status = 0;       ///< completion status, 0 where none came back
  int vendor_error = 0;
  std::string text;  ///< the error, or why it was not run
};

/// What no file tells: answers of CUDA, libibverbs and the process's own limits. Absent lists and members
/// were not queried, or no answer came.
struct Answers {
  std::string cuda_unavailable;  ///< why CUDA has no GPU, "no CUDA driver"; empty where it has
  std::vector<GpuAnswer> gpus;
  bool verbs_queried = false;
  std::vector<RdmaAnswer> rdma;
  std::vector<ProbeResult> probes;
  std::optional<std::uint64_t> memlock_bytes;  ///< RLIMIT_MEMLOCK of this process; 2^64 − 1: unlimited
  std::optional<bool> privileged;              ///< whether it may read what only root may
  std::optional<std::string> kernel_log;       ///< its relevant lines; absent: not readable
  /// Port counters around a short run, by "mlx5_0/1/out_of_sequence" (rdma_ports.hpp); empty without one.
  std::map<std::string, std::uint64_t> counters_before, counters_after;
};

nlohmann::json to_json(const Answers& answers);
/// Takes what fits and leaves out the rest: a recorded file may hold anything.
Answers answers_from_json(const nlohmann::json& document);

struct CollectOptions {
  std::chrono::milliseconds timeout{20'000};  ///< for each call of a driver
};

/// Queries CUDA, libibverbs, the kernel log and this process's limits. Drivers are called in child processes;
/// one that crashes or hangs becomes a ProbeResult "ask cuda" or "ask verbs". Throws SystemError where no
/// process can be created, Interrupted.
Answers collect_answers(const CollectOptions& options);

/// All that checks look at, so that a recorded machine gives the findings it had.
struct Facts {
  topology::Root root;
  topology::Machine machine;
  Answers answers;
  std::uint64_t request_bytes = 64 << 20;  ///< the GPU memory to be registered at once
};

}  // namespace gdrbench::doctor
