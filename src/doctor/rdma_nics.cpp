#include "doctor/rdma_nics.hpp"

#include <algorithm>

namespace gdrbench::doctor {

std::string rdma_module(const topology::PciFunction& nic) {
  constexpr std::uint16_t mellanox = 0x15b3;
  constexpr std::uint16_t first_mlx5 = 0x1011;  // Connect-IB
  if (nic.vendor == mellanox) return nic.device < first_mlx5 ? "mlx4_ib" : "mlx5_ib";
  if (nic.driver == "bnxt_en") return "bnxt_re";
  if (nic.driver == "ice") return "irdma";
  if (nic.driver == "qede") return "qedr";
  if (nic.driver == "cxgb4") return "iw_cxgb4";
  return "";
}

bool netns_is_exclusive(const topology::Root& root) {
  return root.read(netns_mode_file, 8).text.starts_with('N');
}

bool hidden_by_netns(const Facts& facts) {
  return netns_is_exclusive(facts.root) && facts.root.list("sys/class/infiniband").empty() &&
         std::any_of(facts.machine.nics.begin(), facts.machine.nics.end(),
                     [](const topology::Nic& nic) { return !rdma_module(nic.pci).empty(); });
}

}  // namespace gdrbench::doctor
