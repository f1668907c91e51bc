#include "measure/gpu_nic.hpp"

#include "gdrbench/memory.hpp"
#include "topology/pci_path.hpp"

namespace gdrbench::measure {

void add_gpu_nic(PathProof& proof, const Case& c) {
  if (!proof.verbs || c.memory == MemoryKind::host || is_baseline(c.path)) return;
  proof.gpu = c.gpu;
  if (const std::string nic = topology::rdma_pci_address(proof.verbs->device); !nic.empty())
    proof.gpu_nic_distance = topology::distance_between(gpu_summary(c.gpu).pci_address, nic);
}

}  // namespace gdrbench::measure
