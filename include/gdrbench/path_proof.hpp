#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gdrbench/case.hpp"

/// What one rank records as proof of the path that a case took: read from devices, sockets and registrations
/// after they were made, not from what was asked for.
namespace gdrbench {

struct TcpProof {
  std::uint32_t sockets = 0;
  std::uint32_t threads = 0;  ///< that move them, beside the one that measures
  std::string local;          ///< address of the first socket
  std::string remote;
  std::optional<int> mss_bytes;
  std::string congestion_control;
};

struct VerbsProof {
  std::string device;
  FabricKind fabric = FabricKind::hardware;
  int port = 1;
  std::string link_layer;
  int gid_index = 0;
  std::string gid;
  std::uint32_t path_mtu = 0;  ///< bytes
  std::uint32_t active_mtu = 0;
  double link_bytes_per_second = 0;
  std::vector<Registration> registrations;  ///< of all memory registered, each kind once
  std::uint32_t inline_bytes = 0;           ///< largest message that the queue pair takes inline
  VerbsOptions settings{};                  ///< in force, this rank's own
};

struct IpcProof {
  std::string gpu_uuid;
  std::uint32_t queue_pairs = 0;
  std::string remote_gpu_uuid;  ///< empty before the case is connected, as are those below
  std::string link;             ///< "nvlink" where cudaDevP2PAttrNativeAtomicSupported is 1, else "pcie"
  bool native_atomics = false;
  int performance_rank = 0;  ///< cudaDevP2PAttrPerformanceRank
};

/// What the policy did with the payload.
struct PolicyProof {
  Policy policy = Policy::direct;
  Registration registration = Registration::none;       ///< of the memory that the wire works on
  std::optional<std::uint64_t> segments_per_message{};  ///< direct
  std::optional<bool> inline_data{};                    ///< direct
  std::optional<Staging> staging{};                     ///< staged, as are those below
  std::optional<std::uint64_t> chunk_bytes{};
  std::optional<std::uint32_t> outgoing_slots{}, incoming_slots{};  ///< chunks, on each queue pair
  std::optional<std::uint64_t> staging_bytes{};                     ///< of host memory
  std::optional<std::string> copy_engine{};                         ///< "cpu" or one of CopyEngine
  std::optional<std::string> copy_engine_reason{};
};

struct FlushTimes {
  double median = 0, max = 0;
};
/// How writes of the NIC become visible to the GPU's own kernels.
struct GpuWritesProof {
  std::string writes_ordering;  ///< "none", "owner" or "all_devices"
  bool flush_needed = false;
  std::optional<FlushTimes> flush_us;
  std::optional<std::string> no_flush_reason;
};

/// Who saw messages arrive in memory.
struct ObserverProof {
  std::string kind;  ///< "cpu" or "gpu kernel"
  std::optional<std::string> gpu_uuid;
};

/// What worked beside the transfer.
struct LoadProof {
  Load kind = Load::none;
  std::uint32_t blocks = 0;
  std::string gpu_uuid;
};

struct BindingProof {
  std::string cores;  ///< "0-15,32"
  std::string why;    ///< "next to …" or "not bound: …"
};

struct PathProof {
  std::optional<TcpProof> tcp{};  ///< of these three, that of the path's wire
  std::optional<VerbsProof> verbs{};
  std::optional<IpcProof> ipc{};
  PolicyProof policy{};
  std::optional<GpuWritesProof> gpu_writes{};
  std::optional<ObserverProof> observer{};
  std::optional<LoadProof> load{};
  std::optional<int> gpu{};  ///< of the payload, where a NIC works for it
  std::optional<PciDistance> gpu_nic_distance{};
  std::optional<std::uint64_t> port_bytes_sent{};  ///< in the last run, by the NIC's port, headers included
  BindingProof binding{};
};

}  // namespace gdrbench
