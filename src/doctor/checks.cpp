#include <algorithm>
#include <array>

#include "doctor/check_list.hpp"

namespace gdrbench::doctor {

std::span<const Check* const> checks() {
  static const auto list = [] {
    std::array all = {
        &virtual_machine_check,
        &acs_check,
        &iommu_check,
        &bar1_check,
        &bar_placement_check,
        &gpu_check,
        &kernel_log_check,
        &driver_check,
        &driver_answers_check,
        &peermem_check,
        &dmabuf_check,
        &registration_check,
        &rdma_devices_check,
        &netns_check,
        &rdma_cm_check,
        &soft_roce_check,
        &ports_check,
        &gids_check,
        &arp_check,
        &memlock_check,
        &rdma_cgroup_check,
        &mtu_check,
        &counters_check,
        &pcie_link_check,
        &relaxed_ordering_check,
        &distance_check,
        &cpu_check,
        &numa_check,
        &huge_pages_check,
        &probe_registration_check,
        &probe_transfer_check,
    };
    std::stable_sort(all.begin(), all.end(),
                     [](const Check* a, const Check* b) { return a->layer < b->layer; });
    return all;
  }();
  return list;
}

}  // namespace gdrbench::doctor
