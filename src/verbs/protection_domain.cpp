#include "verbs/protection_domain.hpp"

#include <fmt/format.h>

#include "verbs/check.hpp"
#include "verbs/memory_region.hpp"
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

}  // namespace gdrbench::verbs
