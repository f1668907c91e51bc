#include "abi/guard.hpp"
#include "abi/visible.hpp"
#include "nic/protection_domain.hpp"

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

}  // namespace gdrbench::softverbs
