#pragma once

#include <string_view>

namespace gdrbench::cuda {

/// What an address is to CUDA.
enum class PointerKind { plain_host, registered_host, managed, device };

constexpr std::string_view describe(PointerKind kind) {
  switch (kind) {
    case PointerKind::registered_host:
      return "host memory registered with CUDA (cudaMallocHost, cudaHostRegister)";
    case PointerKind::managed:
      return "managed memory (cudaMallocManaged)";
    case PointerKind::device:
      return "GPU memory";
    case PointerKind::plain_host:
      break;
  }
  return "host memory";
}

/// Throws CudaError. Without CUDA every address is plain host memory.
PointerKind classify(const void* address);

/// Throws Unavailable that names the kind of memory unless the address is GPU memory that a NIC can reach.
/// Managed memory is refused although its registration may succeed: its pages migrate, so a NIC that reaches
/// it works on host memory, and the result would be no GPUDirect RDMA.
void require_rdma_capable(const void* address);

/// What to ask before any registration with a NIC as GPU memory: throws Unavailable like
/// require_rdma_capable, but not for the memory of a GPU that supports no GPUDirect RDMA. Whether that can be
/// registered is for the registration to find out (a NIC in software can).
void require_registrable(const void* address);

/// Makes synchronous copies from and to the allocation finish before they return, always, so that a NIC sees
/// what they wrote (CU_POINTER_ATTRIBUTE_SYNC_MEMOPS). False when the driver refuses that for this kind of
/// memory. Throws CudaError on any other failure.
bool set_sync_memops(const void* address);

}  // namespace gdrbench::cuda
