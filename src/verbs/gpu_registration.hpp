#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "gdrbench/case.hpp"
#include "verbs/protection_domain.hpp"

/// Which way of giving GPU memory to a NIC should work on this machine, and what is missing for the others.
/// It explains a registration that failed; none is refused for it, since only trying tells.
namespace gdrbench::verbs {

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
