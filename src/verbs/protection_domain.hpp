#pragma once

#include <infiniband/verbs.h>

#include <memory>

#include "gdrbench/memory_view.hpp"
#include "verbs/device.hpp"

namespace gdrbench::verbs {

class MemoryRegion;
class QueuePair;
struct MemoryRegionAttributes;
struct QueuePairAttributes;

struct DeallocateProtectionDomain {
  static constexpr const char* name = "ibv_dealloc_pd";
  static int destroy(ibv_pd* domain) { return ibv_dealloc_pd(domain); }
};

/// Factory of memory regions and queue pairs that may be used together.
class ProtectionDomain : public std::enable_shared_from_this<ProtectionDomain> {
 public:
  /// See MemoryRegion for what is thrown.
  MemoryRegion register_memory(const MemoryView& view, const MemoryRegionAttributes& attributes) const;
  QueuePair create_queue_pair(std::shared_ptr<const CompletionQueue> completions,
                              const QueuePairAttributes& attributes) const;

  const Device& device() const { return *device_; }
  ibv_pd* get() const { return domain_.get(); }

 private:
  friend class Device;
  explicit ProtectionDomain(std::shared_ptr<const Device> device);

  std::shared_ptr<const Device> device_;
  Handle<ibv_pd, DeallocateProtectionDomain> domain_;
};

}  // namespace gdrbench::verbs
