#include "measure/gpu_nic.hpp"

#include "gdrbench/memory.hpp"
#include "topology/pci_path.hpp"

namespace gdrbench::measure {

nlohmann::json describe_gpu_nic(const Case& c, const std::string& device) {
  if (c.memory == MemoryKind::host || is_baseline(c.path)) return nlohmann::json::object();
  nlohmann::json described{{"gpu", c.gpu}, {"gpu_nic_distance", nullptr}};
  const std::string nic = topology::rdma_pci_address(device);
  if (!nic.empty())
    described["gpu_nic_distance"] =
        topology::to_string(topology::distance_between(gpu_summary(c.gpu).pci_address, nic));
  return described;
}

}  // namespace gdrbench::measure
