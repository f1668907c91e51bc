#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "topology/root.hpp"

/// What the kernel says of itself: its log, its release, and its modules, whose names have underscores:
/// "rdma_rxe".
namespace gdrbench::doctor {

/// The lines that speak of GPUs, RDMA devices, their modules, or errors of PCIe and the IOMMU, the last ones
/// where there are many; bytes that are not ASCII become '?'.
std::string relevant_log_lines(std::string_view log);

/// Those of this machine's kernel; absent where it may not be read.
std::optional<std::string> read_kernel_log();

enum class ModuleState {
  loaded,
  builtin,    ///< part of the kernel
  available,  ///< a file below /lib/modules
  absent,     ///< neither, of a kernel whose list of files was read
  unknown     ///< not loaded or not visible, and the kernel's files cannot be seen
};

/// "loaded", "built in", "not loaded", "not there", "cannot be seen".
std::string_view to_string(ModuleState state);

/// From /sys/module, /proc/modules and the lists in /lib/modules/<release>.
ModuleState module_state(const topology::Root& root, std::string_view name);

/// "6.1.0-31-amd64"; empty where /proc does not tell.
std::string kernel_release(const topology::Root& root);

}  // namespace gdrbench::doctor
