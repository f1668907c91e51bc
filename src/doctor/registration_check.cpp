#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "doctor/check_list.hpp"
#include "verbs/gpu_registration.hpp"

namespace gdrbench::doctor {
namespace {

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "GPU memory can be registered with the NIC."},
    {"gpu_unsupported", Verdict::fail,
     "This GPU does not support GPUDirect RDMA, as is so of GeForce: no module and no setting changes that.",
     "use the staged paths (--paths tcp,rdma), or a data-center or professional GPU"},
    {"peermem_missing", Verdict::fail,
     "Neither way to register GPU memory is there: the GPU exports no dma-buf, and no peer-memory module is "
     "loaded. ibv_reg_mr on GPU memory fails with EFAULT.",
     "modprobe nvidia-peermem, or install NVIDIA's open kernel modules, which export dma-bufs",
     "none of the module; open kernel modules take a reboot and serve Turing and later GPUs only"},
    {"rdma_side", Verdict::fail,
     "Neither way to register GPU memory is there: the RDMA side lacks dma-buf, and no peer-memory module is "
     "loaded.",
     "modprobe nvidia-peermem, or update kernel (5.12 or later) and rdma-core for dma-buf",
     "none of the module; a new kernel takes a reboot"},
    {"no_vmm", Verdict::info,
     "This GPU offers no RDMA-capable memory by cuMemCreate: --memory cuda_vmm cannot use gdr, --memory cuda "
     "can."},
    {"unknown", Verdict::unknown,
     "Without dma-buf it takes a peer-memory module, and whether one is loaded cannot be seen here.",
     "run the doctor outside the container, or let it try: gdrbench doctor without --no-probes"},
};

std::string_view word(verbs::Loaded loaded) {
  switch (loaded) {
    case verbs::Loaded::yes:
      return "loaded";
    case verbs::Loaded::no:
      return "not loaded";
    case verbs::Loaded::unknown:
      break;
  }
  return "cannot be seen";
}

std::string word(const std::optional<bool>& attribute) {
  if (!attribute) return "unknown to CUDA";
  return *attribute ? "1" : "0";
}

std::string probe_word(const std::optional<int>& errno_value) {
  if (!errno_value) return "not probed";
  switch (*errno_value) {
    case EBADF:
      return "EBADF: supported";
    case EPROTONOSUPPORT:
      return "EPROTONOSUPPORT: the kernel lacks it";
    case EOPNOTSUPP:
      return "EOPNOTSUPP: the provider lacks it";
    default:
      return fmt::format("errno {}", *errno_value);
  }
}

bool was_registered(const Answers& answers, const GpuAnswer& gpu, const RdmaAnswer& device) {
  return std::any_of(answers.probes.begin(), answers.probes.end(), [&](const ProbeAnswer& probe) {
    return probe.gpu == gpu.pci_address && probe.device == device.device &&
           probe.what.starts_with("register cuda") && probe.outcome == "passed";
  });
}

std::string_view decide(const GpuAnswer& gpu, const RdmaAnswer& device, verbs::Loaded peermem,
                        std::string& reason) {
  // A driver that does not know the attribute exports none.
  const verbs::GpuRegistrationFacts facts = {.gpu_direct_rdma = gpu.gpu_direct_rdma.value_or(true),
                                             .gpu_dmabuf = gpu.dmabuf.value_or(false),
                                             .peermem = peermem,
                                             .dmabuf_probe = device.dmabuf_probe};
  const verbs::GpuRegistrationAdvice advice = verbs::advise(facts);
  reason = advice.reason;
  if (!facts.gpu_direct_rdma) return "gpu_unsupported";
  if (advice.way == Registration::dmabuf) return "ok";
  if (advice.way == Registration::peermem) return peermem == verbs::Loaded::yes ? "ok" : "unknown";
  return facts.gpu_dmabuf ? "rdma_side" : "peermem_missing";
}

void add(std::vector<Evidence>& list, Evidence one) {
  const bool is_there = std::any_of(list.begin(), list.end(), [&](const Evidence& other) {
    return other.source == one.source && other.value == one.value;
  });
  if (!is_there) list.push_back(std::move(one));
}

// One finding for each cause: of sixteen GPUs and NICs all pairs would say the same.
std::vector<Finding> run(const Check& self, const Facts& facts) {
  const verbs::Loaded peermem = verbs::peermem_loaded(facts.root.folder());
  struct Pairs {
    std::vector<std::string> names;
    std::vector<Evidence> seen;
  };
  std::map<std::string_view, Pairs> by_cause;
  std::size_t pairs = 0;
  for (const GpuAnswer& gpu : facts.answers.gpus)
    for (const RdmaAnswer& device : facts.answers.rdma) {
      // What cannot be opened is the finding of another check.
      if (device.fabric != "hardware" || device.open_errno.value_or(0) != 0) continue;
      ++pairs;
      std::string reason;
      std::string_view cause = decide(gpu, device, peermem, reason);
      if (cause != "ok" && was_registered(facts.answers, gpu, device)) cause = "ok";
      Pairs& found = by_cause[cause];
      found.names.push_back(fmt::format("GPU {} with {}", gpu.pci_address, device.device));
      const std::string of_gpu = " of GPU " + gpu.pci_address;
      add(found.seen, {"CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED" + of_gpu, word(gpu.gpu_direct_rdma)});
      add(found.seen, {"CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED" + of_gpu, word(gpu.dmabuf)});
      add(found.seen, {"ibv_reg_dmabuf_mr(fd -1) on " + device.device, probe_word(device.dmabuf_probe)});
      add(found.seen, {"peer-memory module", std::string(word(peermem))});
      if (cause != "ok") add(found.seen, {"decision", reason});
    }
  std::vector<Finding> findings;
  for (const GpuAnswer& gpu : facts.answers.gpus)
    if (pairs != 0 && gpu.gpu_direct_rdma.value_or(true) && !gpu.vmm_rdma.value_or(true))
      findings.push_back(
          find(self, "no_vmm", "GPU " + gpu.pci_address,
               {{"CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED", word(gpu.vmm_rdma)}}));
  for (const auto& [cause, found] : by_cause) {
    const bool concerns_all = found.names.size() == pairs;
    findings.push_back(
        find(self, cause, concerns_all ? "" : fmt::format("{}", fmt::join(found.names, ", ")), found.seen));
  }
  return findings;
}

}  // namespace

const Check registration_check = {
    .name = "registration",
    .question = "Can GPU memory be registered with a NIC, and which way?",
    .looks_at =
        "CUDA's attributes GPU_DIRECT_RDMA_SUPPORTED and DMA_BUF_SUPPORTED, ibv_reg_dmabuf_mr with "
        "descriptor -1, the peer-memory module, registrations that were tried",
    .layer = Layer::driver,
    .causes = causes,
    .run = run};

}  // namespace gdrbench::doctor
