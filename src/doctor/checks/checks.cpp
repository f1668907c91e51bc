#include "doctor/checks/checks.hpp"

#include <algorithm>

namespace gdrbench::doctor {

std::span<const Check* const> checks() {
  static const std::vector<const Check*> all = [] {
    std::vector<const Check*> list;
    for (const auto& of_file : {
             &pcie_p2p_checks,
             &bar_checks,
             &gpu_checks,
             &kernel_log_checks,
             &gpu_memory_checks,
             &rdma_devices_checks,
             &soft_roce_checks,
             &ports_checks,
             &arp_checks,
             &process_limits_checks,
             &counters_checks,
             &pcie_speed_checks,
             &cpu_checks,
             &probes_checks,
         }) {
      const CheckList more = of_file();
      list.insert(list.end(), more.begin(), more.end());
    }
    // Where two files have checks of one layer, theirs are in the order above.
    std::stable_sort(list.begin(), list.end(),
                     [](const Check* a, const Check* b) { return a->layer < b->layer; });
    return list;
  }();
  return all;
}

}  // namespace gdrbench::doctor
