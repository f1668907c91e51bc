#include "verbs/gpu_registration.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>

#include "gdrbench/error.hpp"
#include "verbs/check.hpp"

namespace gdrbench::verbs {
namespace {

namespace fs = std::filesystem;

constexpr const char* load_it = "load nvidia-peermem (modprobe nvidia-peermem)";
constexpr const char* is_bar1_large_enough = "is the GPU's BAR1 larger than the request?";

bool lacks_dmabuf(const GpuRegistrationFacts& facts) {
  return facts.dmabuf_probe && *facts.dmabuf_probe != EBADF;
}

std::string why_no_dmabuf(const GpuRegistrationFacts& facts) {
  if (facts.gpu_dmabuf)
    return fmt::format("the RDMA side lacks dma-buf: {}",
                       explain_in_part(Step::register_gpu_memory, facts.dmabuf_probe.value_or(0)));
  return "the GPU exports no dma-buf (CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED is 0): that needs NVIDIA's open "
         "kernel modules";
}

GpuRegistrationAdvice advise_peermem(Loaded peermem) {
  switch (peermem) {
    case Loaded::yes:
      return {
          Registration::peermem,
          fmt::format("a peer-memory module is loaded; if it does not serve: was it built for this kernel "
                      "and driver (look at the kernel log), and {}",
                      is_bar1_large_enough)};
    case Loaded::no:
      return {Registration::none, fmt::format("no peer-memory module is loaded: {}", load_it)};
    case Loaded::unknown:
      break;
  }
  return {Registration::peermem,
          fmt::format(
              "whether a peer-memory module is loaded cannot be seen (no /proc/modules): if it is not, {}",
              load_it)};
}

bool lists_peermem(std::istream& modules) {
  for (std::string line; std::getline(modules, line);)
    for (const char* name : {"nvidia_peermem ", "nv_peer_mem "})
      if (line.starts_with(name)) return true;
  return false;
}

}  // namespace

GpuRegistrationAdvice advise(const GpuRegistrationFacts& facts, RegisterBy asked) {
  if (!facts.gpu_direct_rdma)
    return {
        Registration::none,
        "this GPU does not support GPUDirect RDMA (CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED is 0, as "
        "on GeForce): use the staged paths, or a data-center or professional GPU"};
  const bool dmabuf = facts.gpu_dmabuf && !lacks_dmabuf(facts);
  if (dmabuf && asked != RegisterBy::peermem)
    return {Registration::dmabuf,
            fmt::format("GPU and NIC both offer dma-buf; if this request fails nevertheless: {}",
                        is_bar1_large_enough)};
  if (asked == RegisterBy::dmabuf) return {Registration::none, why_no_dmabuf(facts)};
  GpuRegistrationAdvice advice = advise_peermem(facts.peermem);
  if (!dmabuf) {
    advice.reason = why_no_dmabuf(facts) + "; " + advice.reason;
  } else if (advice.way == Registration::none) {
    advice.reason += ", or register as dma-buf, which GPU and NIC both offer";
  }
  return advice;
}

Loaded peermem_loaded(const fs::path& root) {
  std::error_code ignored;
  for (const char* file : {"sys/module/nvidia_peermem/version", "sys/kernel/mm/memory_peers/nv_mem/version"})
    if (fs::exists(root / file, ignored)) return Loaded::yes;
  // A recorded tree may hold a pipe, which would be waited for.
  if (!fs::is_regular_file(root / "proc/modules", ignored)) return Loaded::unknown;
  std::ifstream modules(root / "proc/modules");
  if (!modules) return Loaded::unknown;
  return lists_peermem(modules) ? Loaded::yes : Loaded::no;
}

int probe_dmabuf(const ProtectionDomain& domain) {
  return probe_dmabuf(*domain.get());
}

int probe_dmabuf(ibv_pd& domain) {
  constexpr std::size_t length = 4096;
  ibv_mr* const region = ibv_reg_dmabuf_mr(&domain, 0, length, 0, -1, IBV_ACCESS_LOCAL_WRITE);
  if (region == nullptr) return errno;
  ibv_dereg_mr(region);
  return EBADF;  // takes anything, so dma-bufs too
}

}  // namespace gdrbench::verbs
