#include "verbs/memory_region.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>

#include "base/error_text.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/size.hpp"
#include "verbs/check.hpp"
#include "verbs/queue_pair.hpp"

namespace gdrbench::verbs {

ProtectionDomain::ProtectionDomain(std::shared_ptr<const Device> device)
    : device_(std::move(device)),
      domain_(own<DeallocateProtectionDomain>(
          check_pointer(ibv_alloc_pd(device_->context()), Step::create,
                        fmt::format("allocate protection domain on {}", device_->name())),
          device_)) {}

MemoryRegion ProtectionDomain::register_memory(const MemoryView& view,
                                               const MemoryRegionAttributes& attributes) const {
  return MemoryRegion(shared_from_this(), view, attributes);
}

QueuePair ProtectionDomain::create_queue_pair(std::shared_ptr<const CompletionQueue> completions,
                                              const QueuePairAttributes& attributes) const {
  return QueuePair(shared_from_this(), std::move(completions), attributes);
}

namespace {

unsigned access_flags(const MemoryRegionAttributes& attributes) {
  const unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  return attributes.relaxed_ordering ? access | IBV_ACCESS_RELAXED_ORDERING : access;
}

std::string tried(const ProtectionDomain& domain, const MemoryView& view) {
  return fmt::format("register {} of {} memory at {} on {}", format_size(view.length),
                     view.on_gpu ? "GPU" : "host", fmt::ptr(view.address), domain.device().name());
}

struct Registered {
  ibv_mr* region;
  Registration registration;
};

Registered register_host(const ProtectionDomain& domain, const MemoryView& view, int access) {
  ibv_mr* const region = ibv_reg_mr(domain.get(), view.address, view.length, access);
  return {check_pointer(region, Step::register_host_memory, tried(domain, view)), Registration::host};
}

std::string failure_text(const ProtectionDomain& domain, const MemoryView& view, RegisterBy asked,
                         const std::string& failures) {
  const GpuRegistrationAdvice advice = advise({.gpu_direct_rdma = view.gpu_direct_rdma.value_or(true),
                                               .gpu_dmabuf = view.gpu_dmabuf.value_or(true),
                                               .peermem = peermem_loaded(),
                                               .dmabuf_probe = probe_dmabuf(domain)},
                                              asked);
  const std::string only = asked == RegisterBy::automatic
                               ? ""
                               : fmt::format(" (--registration {} tries nothing else)", to_string(asked));
  // What the doctor says of GPUs and NICs has no part in software.
  const bool is_soft = domain.device().info().fabric == FabricKind::soft_roce;
  return fmt::format("{}: {}{}; {}{}", tried(domain, view), failures, only, advice.reason,
                     confirm_with(is_soft ? "soft_roce" : "registration"));
}

// Whatever the machine looks like, each way is tried: a peer-memory client may have any name.
Registered register_gpu(const ProtectionDomain& domain, const MemoryView& view, int access,
                        RegisterBy asked) {
  std::string failures;
  const auto failed = [&](const char* how, const std::string& why) {
    failures += fmt::format("{}as {}: {}", failures.empty() ? "" : "; ", how, why);
  };
  if (asked != RegisterBy::peermem && view.dmabuf_fd >= 0) {
    const auto address = reinterpret_cast<std::uintptr_t>(view.address);
    ibv_mr* const region =
        ibv_reg_dmabuf_mr(domain.get(), view.dmabuf_offset, view.length, address, view.dmabuf_fd, access);
    if (region != nullptr) return {region, Registration::dmabuf};
    failed("dma-buf", explain_in_part(Step::register_gpu_memory, errno, domain.device().info().fabric));
  } else if (asked != RegisterBy::peermem) {
    failed("dma-buf",
           view.no_dmabuf_reason.empty() ? "the GPU exported none" : std::string(view.no_dmabuf_reason));
  }
  if (asked != RegisterBy::dmabuf) {
    ibv_mr* const region = ibv_reg_mr(domain.get(), view.address, view.length, access);
    if (region != nullptr) return {region, Registration::peermem};
    failed("peer memory", explain_in_part(Step::register_gpu_memory, errno, domain.device().info().fabric));
  }
  throw Unavailable(failure_text(domain, view, asked, failures));
}

}  // namespace

MemoryRegion::MemoryRegion(std::shared_ptr<const ProtectionDomain> domain, const MemoryView& view,
                           const MemoryRegionAttributes& attributes) {
  const int access = static_cast<int>(access_flags(attributes));
  const auto [region, registration] = view.on_gpu
                                          ? register_gpu(*domain, view, access, attributes.registration)
                                          : register_host(*domain, view, access);
  region_ = own<DeregisterMemory>(region, std::move(domain));
  registration_ = registration;
}

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
