#pragma once

#include <string>
#include <string_view>

/// What gdrbench needs of CUDA, in small owning types. The declarations are the same with and without the
/// CUDA Toolkit; without it, or without a driver or GPU, whatever would need one throws Unavailable with the
/// reason.
namespace gdrbench::cuda {

/// "cuda", or "none" when built without the CUDA Toolkit.
std::string_view backend();

/// Why this process can use no GPU, "no CUDA driver" for one; empty when it can. Found out once.
const std::string& unavailable_reason();

/// What the GPU offers to NICs.
struct RdmaSupport {
  bool gpu_direct_rdma = false;  ///< CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED
  bool dmabuf = false;           ///< CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED
  bool vmm_rdma = false;         ///< CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED
};

struct DeviceInfo {
  std::string name;
  std::string uuid;         ///< "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", as nvidia-smi writes it
  std::string driver;       ///< "580.159.04"; "CUDA 13.0" where the kernel module does not tell its version
  std::string pci_address;  ///< "0000:bb:00.0"
  bool gpu_direct_rdma = false;  ///< CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED
  bool dmabuf = false;           ///< CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED
  bool vmm_rdma = false;         ///< CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED
  int writes_ordering = 0;       ///< cudaGPUDirectRDMAWritesOrdering: 0 none, 100 owner, 200 all devices
};

/// GPUs that this process may use; 0 when there is a reason why none can be.
int device_count();

/// Throws Unavailable when the GPU does not exist, CudaError when the driver refuses an answer.
DeviceInfo device_info(int gpu);

/// Throws Unavailable when the GPU does not exist, CudaError when the driver refuses an answer.
RdmaSupport rdma_support(int gpu);

/// How what a NIC writes to the GPU's memory becomes visible to the GPU itself.
struct WriteOrdering {
  int scope = 0;            ///< as DeviceInfo::writes_ordering
  bool host_flush = false;  ///< whether the host can ask for what the scope does not cover
  /// "none", "owner" or "all_devices".
  std::string_view name() const;
  /// Whether copies and kernels of this GPU see the data only after a flush.
  bool needs_flush() const;
};
/// Throws as rdma_support.
WriteOrdering write_ordering(int gpu);

/// "GPU-…" as in DeviceInfo. Throws as device_info().
std::string device_uuid(int gpu);

/// Makes the GPU current for the calling thread. Throws Unavailable when it does not exist.
void use_device(int gpu);

/// For kernels that run beside others for long: all ask for the same division of a multiprocessor into L1 and
/// shared memory, since one that asks for another has to wait until the multiprocessor is empty. Loads the
/// kernel, on the current GPU. Throws CudaError.
void share_multiprocessors(const void* kernel);

/// Makes what a NIC has written to the GPU's memory visible to copies and kernels that follow. Costs nothing
/// on devices whose write ordering covers their own reads. Throws CudaError.
void flush_rdma_writes(int gpu);

/// The same flush whether it is needed or not, to measure it; the GPU must be current (use_device) and offer
/// it. Throws CudaError.
void force_flush(int gpu);

}  // namespace gdrbench::cuda
