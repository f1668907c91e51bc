#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gdrbench/kinds.hpp"

/// What a rank says of the machine that it runs on: for the choice of devices, and recorded in the result
/// file.
namespace gdrbench {

struct CpuInfo {
  std::string model{};  ///< empty where the kernel does not tell
  int cores = 0;        ///< that this process may use
  bool operator==(const CpuInfo&) const = default;
};

/// CUDA as this process has it, with the GPU of number 0.
struct CudaInfo {
  std::string backend{};      ///< "cuda" or "none"
  std::string unavailable{};  ///< why there is no usable GPU; empty when there is one
  int count = 0;
  std::string name{};
  std::string driver{};  ///< "580.159.04"
  std::string uuid{};
  std::string pci_address{};
  bool gpu_direct_rdma = false;
  bool dmabuf = false;
  bool operator==(const CudaInfo&) const = default;
};

struct GpuInfo {
  int index = 0;  ///< by which --gpu chooses
  std::string name{};
  std::string uuid{};
  std::string pci_address{};
  int numa_node = -1;  ///< −1: the kernel does not tell
  bool operator==(const GpuInfo&) const = default;
};

/// A port of an RDMA device.
struct RdmaDeviceInfo {
  std::string name{};
  int port = 1;
  FabricKind fabric = FabricKind::hardware;
  std::string link_layer{};
  std::uint32_t active_mtu = 0;      ///< bytes
  double link_bytes_per_second = 0;  ///< nominal rate of the port; 0 where unknown
  std::string unusable{};            ///< why no queue pair can be had; empty when it can
  std::string pci_address{};         ///< empty for devices in software
  int numa_node = -1;
  std::vector<PciDistance> gpu_distances{};  ///< to each GPU, by its number
  bool operator==(const RdmaDeviceInfo&) const = default;
};

struct RdmaInfo {
  std::vector<RdmaDeviceInfo> devices{};
  std::string unavailable{};  ///< why there is no device
  bool operator==(const RdmaInfo&) const = default;
};

struct EndInfo {
  std::string version{};  ///< of gdrbench
  std::string commit{};
  std::string host{};
  std::string kernel{};
  CpuInfo cpu{};
  std::uint64_t memory_bytes = 0;
  int numa_nodes = 1;
  CudaInfo cuda{};
  std::vector<GpuInfo> gpus{};  ///< empty where none can be used
  RdmaInfo rdma{};
  bool operator==(const EndInfo&) const = default;

  bool has_gpu() const { return cuda.unavailable.empty(); }
};

/// That of this process and machine. A broken driver is part of it, not an error.
EndInfo describe_this_end();

}  // namespace gdrbench
