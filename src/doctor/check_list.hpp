#pragma once

#include "doctor/check.hpp"

/// Every check, each defined in the file of its name.
namespace gdrbench::doctor {

extern const Check driver_answers_check;
extern const Check acs_check;
extern const Check bar1_check;
extern const Check bar_placement_check;
extern const Check cpu_check;
extern const Check distance_check;
extern const Check dmabuf_check;
extern const Check driver_check;
extern const Check gpu_check;
extern const Check huge_pages_check;
extern const Check iommu_check;
extern const Check kernel_log_check;
extern const Check numa_check;
extern const Check pcie_link_check;
extern const Check registration_check;
extern const Check relaxed_ordering_check;
extern const Check virtual_machine_check;
extern const Check peermem_check;
extern const Check probe_registration_check;
extern const Check probe_transfer_check;
extern const Check arp_check;
extern const Check counters_check;
extern const Check gids_check;
extern const Check memlock_check;
extern const Check mtu_check;
extern const Check netns_check;
extern const Check ports_check;
extern const Check rdma_cgroup_check;
extern const Check rdma_cm_check;
extern const Check rdma_devices_check;
extern const Check soft_roce_check;

}  // namespace gdrbench::doctor
