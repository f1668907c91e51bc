#pragma once

#include "doctor/check.hpp"

/// Every check, each defined in the file of its name.
namespace gdrbench::doctor {

extern const Check driver_answers_check;
extern const Check peermem_check;
extern const Check probe_registration_check;
extern const Check probe_transfer_check;
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
