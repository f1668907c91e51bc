#pragma once

#include <span>
#include <vector>

#include "doctor/check.hpp"

namespace gdrbench::doctor {

using CheckList = std::span<const Check* const>;

/// The checks of each file of this folder, which has the list's name: cpu_checks() is in cpu.cpp.
CheckList pcie_p2p_checks();
CheckList bar_checks();
CheckList gpu_checks();
CheckList kernel_log_checks();
CheckList gpu_memory_checks();
CheckList rdma_devices_checks();
CheckList soft_roce_checks();
CheckList ports_checks();
CheckList arp_checks();
CheckList process_limits_checks();
CheckList counters_checks();
CheckList pcie_speed_checks();
CheckList cpu_checks();
CheckList probes_checks();

/// What two machines have to have in common. Not among checks(), which look at one machine; its `run` finds
/// nothing.
extern const Check ends_check;

/// What keeps `here` and `there` from talking to each other, or slows them down, though each may be fine for
/// itself: link layer, fabric, kinds of GID, path MTU, GPU memory, driver. "ok" when nothing does; empty
/// where one of them has no active port.
std::vector<Finding> compare_ends(const Facts& here, const Facts& there);

}  // namespace gdrbench::doctor
