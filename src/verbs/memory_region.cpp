#include "verbs/memory_region.hpp"

#include <fmt/format.h>

#include "gdrbench/error.hpp"
#include "gdrbench/size.hpp"
#include "verbs/check.hpp"

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

}  // namespace

MemoryRegion::MemoryRegion(std::shared_ptr<const ProtectionDomain> domain, const MemoryView& view,
                           const MemoryRegionAttributes& attributes) {
  const int access = static_cast<int>(access_flags(attributes));
  const auto keep = [&](ibv_mr* region, Registration registration) {
    region_ = own<DeregisterMemory>(region, domain);
    registration_ = registration;
  };
  if (!view.on_gpu) {
    keep(check_pointer(ibv_reg_mr(domain->get(), view.address, view.length, access),
                       Step::register_host_memory, tried(*domain, view)),
         Registration::host);
    return;
  }

  std::string dmabuf_failure = "the GPU exported none";
  if (view.dmabuf_fd >= 0) {
    ibv_mr* const region =
        ibv_reg_dmabuf_mr(domain->get(), view.dmabuf_offset, view.length,
                          reinterpret_cast<std::uintptr_t>(view.address), view.dmabuf_fd, access);
    if (region != nullptr) return keep(region, Registration::dmabuf);
    dmabuf_failure = explain(Step::register_gpu_memory, errno);
  }
  ibv_mr* const region = ibv_reg_mr(domain->get(), view.address, view.length, access);
  if (region != nullptr) return keep(region, Registration::peermem);
  const std::string peermem_failure = explain(Step::register_gpu_memory, errno);
  throw Unavailable(fmt::format("{}: as dma-buf: {}; as peer memory: {}", tried(*domain, view),
                                dmabuf_failure, peermem_failure));
}

}  // namespace gdrbench::verbs
