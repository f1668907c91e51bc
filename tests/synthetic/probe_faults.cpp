#include <cerrno>

#include "synthetic/faults.hpp"
#include "synthetic/healthy.hpp"

namespace gdrbench::synthetic {
namespace {

std::function<Machine()> dgx_with(std::vector<doctor::ProbeResult> probes) {
  return [probes = std::move(probes)] {
    Machine machine = dgx();
    machine.answers.probes = probes;
    return machine;
  };
}

doctor::ProbeResult asked(const char* what, const char* outcome, const char* text) {
  return {.what = what, .device = "", .gpu = "", .outcome = outcome, .text = text};
}

doctor::ProbeResult registered(const char* what, const char* of_gpu, const char* outcome,
                               const char* text = "") {
  return {.what = what, .device = "mlx5_0", .gpu = of_gpu, .outcome = outcome, .text = text};
}

// All four transfers of gdr, of which the first has this outcome.
std::vector<doctor::ProbeResult> transfers(const char* first, const char* others, const char* text) {
  std::vector<doctor::ProbeResult> probes;
  for (const char* what : {"transfer gdr write forward", "transfer gdr write reverse",
                           "transfer gdr read forward", "transfer gdr read reverse"}) {
    const char* const outcome = probes.empty() ? first : others;
    probes.push_back({.what = what,
                      .device = "mlx5_0",
                      .gpu = first_gpu,
                      .outcome = outcome,
                      .text = std::string(outcome) == "passed" ? "" : text});
  }
  return probes;
}

}  // namespace

std::vector<Scenario> probe_faults() {
  constexpr const char* dmabuf = "register cuda dmabuf";
  constexpr const char* peermem = "register cuda peermem";
  constexpr const char* rejected = "EFAULT (Bad address)";
  return {
      {"dgx_with_all_probes_passed", dgx_with(transfers("passed", "passed", "")), {}},
      {"dgx_whose_cuda_crashes",
       dgx_with({asked("ask cuda", "crashed", "SIGSEGV")}),
       {"driver_answers/crashed"}},
      {"dgx_whose_verbs_hang",
       dgx_with({asked("ask verbs", "timed out", "no answer within 20 s")}),
       {"driver_answers/hangs"}},
      {"dgx_whose_cuda_refuses",
       dgx_with({asked("ask cuda", "failed", "CUDA_ERROR_NOT_PERMITTED")}),
       {"driver_answers/failed"}},
      {"dgx_registering_by_dmabuf_alone",
       dgx_with({registered("register host", "", "passed"), registered(dmabuf, first_gpu, "passed"),
                 registered(peermem, first_gpu, "failed", rejected)}),
       {"probe_registration/one_way"}},
      {"dgx_registering_no_host_memory",
       dgx_with({registered("register host", "", "failed", "ENOMEM (Cannot allocate memory)")}),
       {"probe_registration/host_fails"}},
      {"dgx_registering_no_gpu_memory",
       dgx_with({registered("register host", "", "passed"), registered(dmabuf, first_gpu, "failed", rejected),
                 registered(peermem, first_gpu, "failed", rejected)}),
       {"probe_registration/gpu_fails"}},
      {"dgx_crashing_on_registration",
       dgx_with(
           {registered(dmabuf, first_gpu, "crashed", "SIGBUS"), registered(peermem, first_gpu, "passed")}),
       {"probe_registration/crashed"}},
      {"dgx_hanging_on_registration",
       dgx_with({registered(peermem, first_gpu, "timed out", "no answer within 20 s")}),
       {"probe_registration/hangs"}},
      {"dgx_where_gdr_is_not_tried",
       dgx_with(transfers("not run", "not run", "no RDMA device")),
       {"probe_transfer/not_run"}},
      {"dgx_where_one_transfer_fails",
       dgx_with(transfers("failed", "passed", "IBV_WC_REM_OP_ERR (11), vendor error 0x89")),
       {"probe_transfer/partly"}},
      {"dgx_where_transfers_fail",
       dgx_with(transfers("failed", "failed", "IBV_WC_LOC_PROT_ERR (4), vendor error 0x51")),
       {"probe_transfer/fails"}},
      {"dgx_where_a_transfer_crashes",
       dgx_with(transfers("crashed", "passed", "SIGSEGV")),
       {"probe_transfer/crashed"}},
      {"dgx_where_a_transfer_hangs",
       dgx_with(transfers("timed out", "not run", "no answer within 60 s")),
       {"probe_transfer/hangs"}},
  };
}

}  // namespace gdrbench::synthetic
