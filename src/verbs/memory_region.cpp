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

struct Registered {
  ibv_mr* region;
  Registration registration;
};

Registered register_host(const ProtectionDomain& domain, const MemoryView& view, int access) {
  ibv_mr* const region = ibv_reg_mr(domain.get(), view.address, view.length, access);
  return {check_pointer(region, Step::register_host_memory, tried(domain, view)), Registration::host};
}

Registered register_gpu(const ProtectionDomain& domain, const MemoryView& view, int access, RegisterBy way) {
  std::string dmabuf_failure = way == RegisterBy::peermem ? "not asked for" : "the GPU exported none";
  if (view.dmabuf_fd >= 0 && way != RegisterBy::peermem) {
    const auto address = reinterpret_cast<std::uintptr_t>(view.address);
    ibv_mr* const region =
        ibv_reg_dmabuf_mr(domain.get(), view.dmabuf_offset, view.length, address, view.dmabuf_fd, access);
    if (region != nullptr) return {region, Registration::dmabuf};
    dmabuf_failure = explain(Step::register_gpu_memory, errno);
  }
  if (way == RegisterBy::dmabuf)
    throw Unavailable(fmt::format("{}: as dma-buf: {}", tried(domain, view), dmabuf_failure));
  ibv_mr* const region = ibv_reg_mr(domain.get(), view.address, view.length, access);
  if (region != nullptr) return {region, Registration::peermem};
  const std::string peermem_failure = explain(Step::register_gpu_memory, errno);
  throw Unavailable(fmt::format("{}: as dma-buf: {}; as peer memory: {}", tried(domain, view), dmabuf_failure,
                                peermem_failure));
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
