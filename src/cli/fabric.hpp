#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gdrbench/case.hpp"

namespace gdrbench::cli {

inline constexpr const char* fabric_help =
    "hardware, soft-roce, softverbs (the software NIC), or auto: the first of them that is there";

/// The value of --fabric; absent for "auto". Throws UsageError.
std::optional<FabricKind> read_fabric(const std::string& name);

/// What a command asks of the fabric.
struct FabricRequest {
  std::optional<FabricKind> fabric;  ///< absent: auto
  std::vector<std::string> devices;  ///< as named by flags; empty names do not count
  bool uses_verbs = true;            ///< whether it may run a path over queue pairs
};

/// Sees to it that softverbs, the software NIC, is loaded where it is asked for, and under `auto` where this
/// machine has no usable RDMA device. It has to be loaded in front of libibverbs, which only a preload does:
/// the program then executes itself anew with LD_PRELOAD set, and this call does not return. In the new
/// process it puts LD_PRELOAD back to what it was. To be called before sockets, forks and devices.
///
/// Returns why softverbs cannot stand in for the device that `auto` did not find, else an empty text. Throws
/// Unavailable, with the places and the remedy, when softverbs was asked for and cannot be loaded.
std::string provide_fabric(const FabricRequest& request, char** argv);

/// "RDMA device mlx5_0 (hardware), rxe0 (soft-roce, functional)", or "no RDMA device: …" with the reason.
/// `no_softverbs` is what provide_fabric() returned.
std::string offered_devices(const std::string& no_softverbs);

}  // namespace gdrbench::cli
