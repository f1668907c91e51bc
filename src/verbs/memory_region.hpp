#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>

#include "gdrbench/case.hpp"
#include "gdrbench/memory_view.hpp"
#include "verbs/protection_domain.hpp"

namespace gdrbench::verbs {

struct MemoryRegionAttributes {
  bool relaxed_ordering = true;  ///< IBV_ACCESS_RELAXED_ORDERING; devices that lack it ignore it
  RegisterBy registration = RegisterBy::automatic;  ///< of GPU memory
};

struct DeregisterMemory {
  static constexpr const char* name = "ibv_dereg_mr";
  static int destroy(ibv_mr* region) { return ibv_dereg_mr(region); }
};

/// Memory that the device may read and write, from here and from remote. GPU memory is registered through its
/// dma-buf where there is one, else, or when that fails, through a peer-memory client.
class MemoryRegion {
 public:
  std::uint32_t lkey() const { return region_->lkey; }
  std::uint32_t rkey() const { return region_->rkey; }
  Registration registration() const { return registration_; }

 private:
  friend class ProtectionDomain;
  /// Throws Unavailable when neither way works for GPU memory, naming both failures; SystemError for host
  /// memory.
  MemoryRegion(std::shared_ptr<const ProtectionDomain> domain, const MemoryView& view,
               const MemoryRegionAttributes& attributes);

  Handle<ibv_mr, DeregisterMemory> region_;
  Registration registration_ = Registration::none;
};

}  // namespace gdrbench::verbs
