// Protection domains and memory regions.
#include <unistd.h>

#include <cstdint>
#include <memory>

#include "abi/verbs.hpp"
#include "nic/context.hpp"
#include "nic/region_table.hpp"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace gdrbench::softverbs {

GDRBENCH_VERB ibv_pd* ibv_alloc_pd(ibv_context* context) {
  return returns_null("ibv_alloc_pd", [&]() -> ibv_pd* {
    return create<ProtectionDomain>(Context::of(context).domains, *context);
  });
}

GDRBENCH_VERB int ibv_dealloc_pd(ibv_pd* pd) {
  return returns_errno("ibv_dealloc_pd", [&] {
    ProtectionDomain& domain = ProtectionDomain::of(pd);
    if (domain.users != 0) return EBUSY;
    destroy(Context::of(pd->context).domains, &domain);
    return 0;
  });
}

namespace {

constexpr int remote_writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
/// Flags of the verbs interface for features that are not offered.
constexpr int not_offered =
    IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB;

/// The access flags that count: optional ones that are not known are no reason to refuse.
int checked_access(unsigned requested) {
  const int access = static_cast<int>(requested) & ~(optional_access & ~known_access);
  refuse_if((access & ~known_access & ~not_offered) != 0, EINVAL);
  refuse_if((access & not_offered) != 0, EOPNOTSUPP);
  refuse_if((access & remote_writes) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0, EINVAL);
  return access;
}

struct Range {
  void* shown_address;  ///< ibv_mr::addr
  std::uint64_t base;   ///< see MemoryRegion
  std::size_t length;
  std::uint64_t iova;
};

ibv_mr* insert(ibv_pd* pd, const Range& range, int access, ResolvedMemory resolved) {
  refuse_if(resolved.memory == nullptr, resolved.error);
  auto region = std::make_unique<MemoryRegion>();
  region->context = pd->context;
  region->pd = pd;
  region->addr = range.shown_address;
  region->length = range.length;
  region->base = range.base;
  region->iova = range.iova;
  region->access = access;
  region->memory = std::move(resolved.memory);
  Context::of(pd->context).nic().regions().insert(*region);
  region->handle = region->lkey;
  ++ProtectionDomain::of(pd).users;
  return region.release();
}

ibv_mr* register_range(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, unsigned access) {
  const auto base = reinterpret_cast<std::uintptr_t>(address);
  return returns_null("ibv_reg_mr", [&] {
    const int checked = checked_access(access);
    refuse_if(length == 0 || length > UINTPTR_MAX - base || length - 1 > UINT64_MAX - iova);
    return insert(pd, {address, base, length, iova}, checked,
                  resolve_memory(base, length, (checked & IBV_ACCESS_LOCAL_WRITE) != 0));
  });
}

}  // namespace

GDRBENCH_VERB ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
  return register_range(pd, address, length, reinterpret_cast<std::uintptr_t>(address),
                        static_cast<unsigned>(access));
}

GDRBENCH_VERB ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                                      int access) {
  return register_range(pd, address, length, iova, static_cast<unsigned>(access));
}

GDRBENCH_VERB ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                                       unsigned access) {
  return register_range(pd, address, length, iova, access);
}

GDRBENCH_VERB ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length,
                                        std::uint64_t iova, int descriptor, int access) {
  return returns_null("ibv_reg_dmabuf_mr", [&] {
    const int checked = checked_access(static_cast<unsigned>(access));
    const auto page_mask = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) - 1;
    refuse_if(((offset ^ iova) & page_mask) != 0);
    // Before the length, because programs ask with −1 and no length whether dma-buf is offered at all.
    ResolvedMemory resolved = resolve_dmabuf(descriptor, offset, length, iova);
    refuse_if(resolved.memory != nullptr && length == 0);
    // As libibverbs shows it: within the dma-buf.
    auto* const shown_address = reinterpret_cast<void*>(offset);
    return insert(pd, {shown_address, iova, length, iova}, checked, std::move(resolved));
  });
}

/// Not offered; the region stays as it is.
GDRBENCH_VERB int ibv_rereg_mr(ibv_mr*, int, ibv_pd*, void*, std::size_t, int) {
  const int error = injected("ibv_rereg_mr");
  errno = error != 0 ? error : EOPNOTSUPP;
  return IBV_REREG_MR_ERR_INPUT;
}

GDRBENCH_VERB int ibv_dereg_mr(ibv_mr* mr) {
  return returns_errno("ibv_dereg_mr", [&] {
    const std::unique_ptr<MemoryRegion> region(&MemoryRegion::of(mr));
    Context::of(mr->context).nic().regions().remove(*region);
    --ProtectionDomain::of(mr->pd).users;
    return 0;
  });
}

// The NIC reads and writes by virtual address and pins nothing, so a fork takes no page away from it.

GDRBENCH_VERB int ibv_fork_init() {
  return 0;
}

GDRBENCH_VERB ibv_fork_status ibv_is_fork_initialized() {
  return IBV_FORK_UNNEEDED;
}

}  // namespace gdrbench::softverbs
