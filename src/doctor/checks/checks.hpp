#pragma once

#include <span>

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

}  // namespace gdrbench::doctor
