#include "machines/faults.hpp"

namespace gdrbench::machines {

std::vector<Known> known_machines() {
  std::vector<Known> all = healthy_machines();
  for (const auto& list : {platform_faults(), rdma_faults(), probe_faults()})
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace gdrbench::machines
