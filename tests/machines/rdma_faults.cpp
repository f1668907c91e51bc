#include "machines/faults.hpp"
#include "machines/rdma_fault_groups.hpp"

namespace gdrbench::machines {

std::vector<Known> rdma_faults() {
  std::vector<Known> all;
  for (const auto& list : {device_faults(), port_faults(), soft_roce_faults()})
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace gdrbench::machines
