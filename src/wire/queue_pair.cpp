#include "wire/queue_pair.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/error_text.hpp"

namespace gdrbench::wire {

nlohmann::json to_json(const Region& region) {
  return {{"address", reinterpret_cast<std::uint64_t>(region.address)},
          {"length", region.length},
          {"rkey", region.rkey}};
}

RemoteRegion remote_region(const nlohmann::json& j) {
  return {.address = j.at("address").get<std::uint64_t>(),
          .length = j.at("length").get<std::uint64_t>(),
          .rkey = j.at("rkey").get<std::uint32_t>()};
}

namespace {

// The numbers of enum ibv_wc_status are their places here.
constexpr const char* names[] = {"IBV_WC_SUCCESS",
                                 "IBV_WC_LOC_LEN_ERR",
                                 "IBV_WC_LOC_QP_OP_ERR",
                                 "IBV_WC_LOC_EEC_OP_ERR",
                                 "IBV_WC_LOC_PROT_ERR",
                                 "IBV_WC_WR_FLUSH_ERR",
                                 "IBV_WC_MW_BIND_ERR",
                                 "IBV_WC_BAD_RESP_ERR",
                                 "IBV_WC_LOC_ACCESS_ERR",
                                 "IBV_WC_REM_INV_REQ_ERR",
                                 "IBV_WC_REM_ACCESS_ERR",
                                 "IBV_WC_REM_OP_ERR",
                                 "IBV_WC_RETRY_EXC_ERR",
                                 "IBV_WC_RNR_RETRY_EXC_ERR",
                                 "IBV_WC_LOC_RDD_VIOL_ERR",
                                 "IBV_WC_REM_INV_RD_REQ_ERR",
                                 "IBV_WC_REM_ABORT_ERR",
                                 "IBV_WC_INV_EECN_ERR",
                                 "IBV_WC_INV_EEC_STATE_ERR",
                                 "IBV_WC_FATAL_ERR",
                                 "IBV_WC_RESP_TIMEOUT_ERR",
                                 "IBV_WC_GENERAL_ERR",
                                 "IBV_WC_TM_ERR",
                                 "IBV_WC_TM_RNDV_INCOMPLETE"};

enum class Memory : std::uint8_t { any, host, gpu };
constexpr FabricKind any_fabric = FabricKind::none;
// mlx5's syndrome when a PCIe access by the NIC comes back with an error; 0 below stands for any.
constexpr std::uint8_t pcie_failure = 0x51;

/// Usual cause of a status, what to try, and the doctor's check that would see it.
struct Advice {
  std::uint32_t status;
  const char* text;
  const char* check = "";
  FabricKind fabric = any_fabric;
  Memory memory = Memory::any;
  std::uint8_t vendor_error = 0;
};

// As met in the field. Of several for one status the first that fits counts, so exceptions come first. What
// rdma_rxe does otherwise than the InfiniBand specification is in src/softverbs/docs/behaviour.md.
constexpr Advice advices[] = {
    {1, "a receive too short for its message, or a message longer than the device takes", "",
     FabricKind::softverbs},
    {1,
     "a receive too short for its message, or ends with different path MTUs; use the smaller active MTU at "
     "both ends",
     "mtu"},
    {2,
     "with rdma_rxe: a receive too short for its message, a wrong lkey, or memory that may not be written; "
     "check the memory region",
     "", FabricKind::soft_roce},
    {2, "the request does not fit the queue pair: too many entries, or an operation it lacks"},
    {4,
     "the NIC cannot reach GPU memory over PCIe: ACS redirection or the IOMMU on the way (inside a virtual "
     "machine: ATS off), or a BAR above 56 TB; run the same with --memory host to tell",
     "acs", FabricKind::hardware, Memory::gpu, pcie_failure},
    {4,
     "wrong lkey, or a range outside its memory region; with GPU memory also ACS or the IOMMU: run the same "
     "with --memory host to tell",
     "acs", FabricKind::hardware, Memory::gpu},
    {4, "wrong lkey, or a range outside its memory region"},
    {5, "consequence of an earlier error; find the first one, at either end"},
    {7, "the remote end answered with an opcode that does not fit; check both ends' drivers"},
    {8, "the memory region lacks IBV_ACCESS_LOCAL_WRITE"},
    {9,
     "an operation the remote device does not support, a receive too short there, or more reads in flight "
     "than its rd_atomic depth"},
    {10,
     "wrong rkey, or a range outside the remote memory region; with rdma_rxe also a remote process killed "
     "during a one-sided operation: look at its output",
     "", FabricKind::soft_roce},
    {10,
     "wrong rkey, or a range outside the remote memory region (a VMM range may be registered for its first "
     "segment only)",
     "registration", any_fabric, Memory::gpu},
    {10, "wrong rkey, or a range outside the remote memory region"},
    {11, "with rdma_rxe: a receive too short at the remote end, or memory there that the request may not use",
     "", FabricKind::soft_roce},
    {11,
     "the remote NIC could not complete the request, such as a read of GPU memory, which some root complexes "
     "do not forward; try the other direction",
     "distance", FabricKind::hardware, Memory::gpu},
    {11,
     "the remote NIC could not complete the request; try the other direction, and look at its kernel log"},
    {12,
     "the remote process died, or could not be reached within the retries (stderr tells why); look at its "
     "output, and between hosts whether TCP ports 20480-24575 are open",
     "", FabricKind::softverbs},
    {12,
     "no acknowledgement: the remote process died, UDP port 4791 is blocked, the netdev is down, or both "
     "ends are soft-RoCE devices of one network namespace, which cannot reach each other",
     "soft_roce", FabricKind::soft_roce},
    {12,
     "no acknowledgement: GIDs that do not reach each other, different path MTUs, UDP port 4791 blocked "
     "(RoCE), packet loss, or the remote process died; check the GID pair and the port's error counters",
     "gids"},
    {13, "the remote end had no receive posted for too long; check that its process runs and keeps up", "",
     FabricKind::softverbs},
    {13,
     "the remote end had no receive posted for too long; check its credits, and that min_rnr_timer is not 0 "
     "(655 ms)",
     "counters"},
    {16, "the remote end aborted the operation; look at its error"},
    {19, "the device failed; look at the kernel log", "kernel_log", FabricKind::hardware},
    {19, "the device failed"},
    {20, "the remote response took too long"},
    {21, "a transport error of its own kind; look at the vendor error and the kernel log", "kernel_log"},
};

bool fits(const Advice& advice, std::uint32_t status, const StatusContext& where) {
  return advice.status == status && (advice.fabric == any_fabric || advice.fabric == where.fabric) &&
         (advice.memory == Memory::any || (advice.memory == Memory::gpu) == where.on_gpu) &&
         (advice.vendor_error == 0 || advice.vendor_error == where.vendor_error);
}

}  // namespace

std::string describe_status(std::uint32_t status, const StatusContext& where) {
  if (status == 0) return "IBV_WC_SUCCESS (0)";
  if (status >= std::size(names))
    return fmt::format("unknown completion status ({}), vendor error {:#x}", status, where.vendor_error);
  std::string text = fmt::format("{} ({}), vendor error {:#x}", names[status], status, where.vendor_error);
  const auto* const advice = std::find_if(std::begin(advices), std::end(advices),
                                          [&](const Advice& one) { return fits(one, status, where); });
  if (advice == std::end(advices)) return text;
  return text + ": " + advice->text + confirm_with(advice->check);
}

}  // namespace gdrbench::wire
