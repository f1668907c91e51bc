#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "wire/queue_pair.hpp"

namespace gdrbench::wire {
namespace {

struct StatusEntry {
  std::uint32_t status;
  const char* name;
  const char* advice;  ///< usual cause and what to try; "" where the name says all
};

// Numbers and names of enum ibv_wc_status; causes as met in the field.
constexpr StatusEntry statuses[] = {
    {0, "IBV_WC_SUCCESS", ""},
    {1, "IBV_WC_LOC_LEN_ERR",
     "a receive too short for its message, or ends with different path MTUs; use the smaller active MTU at "
     "both ends"},
    {2, "IBV_WC_LOC_QP_OP_ERR",
     "the request does not fit the queue pair: too many entries, or an operation it lacks"},
    {3, "IBV_WC_LOC_EEC_OP_ERR", ""},
    {4, "IBV_WC_LOC_PROT_ERR", "wrong lkey, or a range outside its memory region"},
    {5, "IBV_WC_WR_FLUSH_ERR", "consequence of an earlier error; find the first one, at either end"},
    {6, "IBV_WC_MW_BIND_ERR", ""},
    {7, "IBV_WC_BAD_RESP_ERR",
     "the peer answered with an opcode that does not fit; check both ends' drivers"},
    {8, "IBV_WC_LOC_ACCESS_ERR", "the memory region lacks IBV_ACCESS_LOCAL_WRITE"},
    {9, "IBV_WC_REM_INV_REQ_ERR",
     "an operation the peer's device does not support, a receive too short there, or more reads in flight "
     "than its "
     "rd_atomic depth"},
    {10, "IBV_WC_REM_ACCESS_ERR",
     "wrong rkey, or a range outside the peer's memory region (a VMM range may be registered for its first "
     "segment only)"},
    {11, "IBV_WC_REM_OP_ERR",
     "the peer's NIC could not complete the request, such as a read of GPU memory; try the other direction"},
    {12, "IBV_WC_RETRY_EXC_ERR",
     "no acknowledgement: GIDs that do not reach each other, different path MTUs, UDP port 4791 blocked, "
     "packet loss, or "
     "the peer died; check the GID pair and the port's error counters"},
    {13, "IBV_WC_RNR_RETRY_EXC_ERR",
     "the peer had no receive posted for too long; check its credits, and that min_rnr_timer is not 0 (655 "
     "ms)"},
    {14, "IBV_WC_LOC_RDD_VIOL_ERR", ""},
    {15, "IBV_WC_REM_INV_RD_REQ_ERR", ""},
    {16, "IBV_WC_REM_ABORT_ERR", "the peer aborted the operation; look at its error"},
    {17, "IBV_WC_INV_EECN_ERR", ""},
    {18, "IBV_WC_INV_EEC_STATE_ERR", ""},
    {19, "IBV_WC_FATAL_ERR", "the device failed; look at the kernel log"},
    {20, "IBV_WC_RESP_TIMEOUT_ERR", "the peer's response took too long"},
    {21, "IBV_WC_GENERAL_ERR",
     "a transport error of its own kind; look at the vendor error and the kernel log"},
    {22, "IBV_WC_TM_ERR", ""},
    {23, "IBV_WC_TM_RNDV_INCOMPLETE", ""},
};

constexpr std::uint32_t local_protection_status = 4;
// mlx5's syndrome when a PCIe access by the NIC comes back with an error.
constexpr std::uint32_t vendor_pcie_failure = 0x51;

std::string advice(const StatusEntry& entry, std::uint32_t vendor_error, bool on_gpu) {
  if (entry.status != local_protection_status || !on_gpu) return entry.advice;
  if (vendor_error == vendor_pcie_failure)
    return "the NIC cannot reach GPU memory over PCIe: ACS redirection or the IOMMU on the way (inside a "
           "virtual machine: "
           "ATS off), or a BAR above 56 TB; run the same with --memory host to tell";
  return fmt::format("{}; with GPU memory also ACS or the IOMMU: run the same with --memory host to tell",
                     entry.advice);
}

}  // namespace

std::string describe_status(std::uint32_t status, std::uint32_t vendor_error, bool on_gpu) {
  const auto* const entry = std::find_if(std::begin(statuses), std::end(statuses),
                                         [status](const StatusEntry& e) { return e.status == status; });
  if (entry == std::end(statuses))
    return fmt::format("unknown completion status ({}), vendor error {:#x}", status, vendor_error);
  if (status == 0) return "IBV_WC_SUCCESS (0)";
  const std::string text = advice(*entry, vendor_error, on_gpu);
  return fmt::format("{} ({}), vendor error {:#x}{}{}", entry->name, status, vendor_error,
                     text.empty() ? "" : ": ", text);
}

}  // namespace gdrbench::wire
