#include "doctor/rdma_nics.hpp"

#include <algorithm>
#include <string_view>

namespace gdrbench::doctor {
namespace {

// EFA, MANA and pvrdma are functions of their own beside ena, hv_netvsc and vmxnet3.
constexpr std::string_view drivers_without_rdma[] = {
    "8139cp", "8139too", "alx",    "ath10k_pci", "ath11k_pci", "atl1c",    "atlantic",
    "bnx2",   "e1000",   "e1000e", "ena",        "forcedeth",  "gve",      "igb",
    "igbvf",  "igc",     "ixgbe",  "ixgbevf",    "iwlwifi",    "ne2k-pci", "pcnet32",
    "r8125",  "r8169",   "sky2",   "tg3",        "virtio-pci", "vmxnet3"};

}  // namespace

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

bool does_no_rdma(const topology::PciFunction& nic) {
  return std::find(std::begin(drivers_without_rdma), std::end(drivers_without_rdma), nic.driver) !=
         std::end(drivers_without_rdma);
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
