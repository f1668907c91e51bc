#pragma once

#include <optional>

#include "cuda/device_memory.hpp"
#include "cuda/dmabuf.hpp"
#include "cuda/host_registration.hpp"
#include "cuda/pattern.hpp"
#include "cuda/vmm_memory.hpp"
#include "gdrbench/memory.hpp"
#include "memory/host_mapping.hpp"

namespace gdrbench {

/// One of host, device and vmm is there. What refers to it comes after it, so that it goes first.
struct Buffer::Backing {
  std::optional<memory::HostMapping> host;
  std::optional<cuda::DeviceMemory> device;
  std::optional<cuda::VmmMemory> vmm;
  std::optional<cuda::HostRegistration> pinned;
  std::optional<cuda::Dmabuf> dmabuf;
  std::optional<cuda::PatternKernels> kernels;  ///< of GPU memory
};

/// What the test pattern needs of a buffer of GPU memory.
struct BufferKernels {
  static cuda::PatternKernels& of(const Buffer& buffer) { return *buffer.backing_->kernels; }
};

}  // namespace gdrbench
