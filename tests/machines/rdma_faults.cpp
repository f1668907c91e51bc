#include "machines/faults.hpp"

namespace gdrbench::machines {

std::vector<Known> rdma_faults() {
  return {};
}

}  // namespace gdrbench::machines
