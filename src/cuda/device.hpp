#pragma once

#include <string>

namespace gdrbench::cuda {

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

/// "GPU-…" as in DeviceInfo. Throws as device_info().
std::string device_uuid(int gpu);

/// Makes the GPU current for the calling thread. Throws Unavailable when it does not exist.
void use_device(int gpu);

/// Makes what a NIC has written to the GPU's memory visible to copies and kernels that follow. Costs nothing
/// on devices whose write ordering covers their own reads. Throws CudaError.
void flush_rdma_writes(int gpu);

}  // namespace gdrbench::cuda
