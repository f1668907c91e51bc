#include <algorithm>
#include <array>

#include "doctor/check_list.hpp"

namespace gdrbench::doctor {

std::span<const Check* const> checks() {
  static const auto list = [] {
    std::array all = {
        &driver_answers_check,
        &peermem_check,
        &probe_registration_check,
        &probe_transfer_check,
        &netns_check,   &rdma_devices_check, &rdma_cm_check, &soft_roce_check, &ports_check,
        &gids_check,    &memlock_check, &rdma_cgroup_check,  &mtu_check,     &counters_check,
    };
    std::stable_sort(all.begin(), all.end(),
                     [](const Check* a, const Check* b) { return a->layer < b->layer; });
    return all;
  }();
  return list;
}

}  // namespace gdrbench::doctor
