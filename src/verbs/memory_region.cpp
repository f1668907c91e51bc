#include "verbs/memory_region.hpp"

#include <fmt/format.h>

#include "base/confirm.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/size.hpp"
#include "verbs/check.hpp"
#include "verbs/gpu_registration.hpp"

namespace gdrbench::verbs {
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

}  // namespace gdrbench::verbs
