#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "gdrbench/case.hpp"
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

struct MemoryRegionAttributes {
  bool relaxed_ordering = true;  ///< IBV_ACCESS_RELAXED_ORDERING; devices that lack it ignore it
  RegisterBy registration = RegisterBy::automatic;  ///< of GPU memory
};

struct DeregisterMemory {
  static constexpr const char* name = "ibv_dereg_mr";
  static int destroy(ibv_mr* region) { return ibv_dereg_mr(region); }
};

/// Memory that the device may read and write, from here and from remote. GPU memory is registered as
/// the attributes ask; automatic: through its dma-buf where there is one, else, or when that fails, through a
/// peer-memory client.
class MemoryRegion {
 public:
  std::uint32_t lkey() const { return region_->lkey; }
  std::uint32_t rkey() const { return region_->rkey; }
  Registration registration() const { return registration_; }

 private:
  friend class ProtectionDomain;
  /// Throws Unavailable when no way that was asked for works for GPU memory, naming each failure and what is
  /// missing; SystemError for host memory.
  MemoryRegion(std::shared_ptr<const ProtectionDomain> domain, const MemoryView& view,
               const MemoryRegionAttributes& attributes);

  Handle<ibv_mr, DeregisterMemory> region_;
  Registration registration_ = Registration::none;
};

/// Which way of giving GPU memory to a NIC should work on this machine, and what is missing for the others.
/// It explains a registration that failed; none is refused for it, since only trying tells.

enum class Loaded { no, yes, unknown };

struct GpuRegistrationFacts {
  bool gpu_direct_rdma = true;  ///< CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED
  bool gpu_dmabuf = true;       ///< CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED
  Loaded peermem = Loaded::unknown;
  std::optional<int> dmabuf_probe;  ///< from probe_dmabuf(); absent: not probed
};

struct GpuRegistrationAdvice {
  Registration way = Registration::none;  ///< dmabuf, peermem or none
  std::string reason;                     ///< why that way, or what is missing, and what to do
};
GpuRegistrationAdvice advise(const GpuRegistrationFacts& facts, RegisterBy asked = RegisterBy::automatic);

/// Whether a peer-memory client for NVIDIA GPUs is loaded; unknown where /proc/modules cannot be read. `root`
/// stands in for "/" in the tests.
Loaded peermem_loaded(const std::filesystem::path& root = "/");

/// The errno value of registering descriptor −1 as a dma-buf: EBADF where kernel and provider know dma-bufs,
/// EPROTONOSUPPORT (kernel) or EOPNOTSUPP (provider) where they do not.
int probe_dmabuf(const ProtectionDomain& domain);
int probe_dmabuf(ibv_pd& domain);

}  // namespace gdrbench::verbs
