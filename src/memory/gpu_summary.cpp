#include <fmt/format.h>

#include "cuda/backend.hpp"
#include "cuda/device.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/memory.hpp"

namespace gdrbench {

GpuSummary gpu_summary(int gpu) {
  GpuSummary summary;
  summary.backend = cuda::backend();
  try {
    summary.unavailable = cuda::unavailable_reason();
    summary.count = cuda::device_count();
    if (!summary.unavailable.empty()) return summary;
    const cuda::DeviceInfo device = cuda::device_info(gpu);
    summary.name = device.name;
    summary.uuid = device.uuid;
    summary.driver = device.driver;
    summary.pci_address = device.pci_address;
    summary.gpu_direct_rdma = device.gpu_direct_rdma;
    summary.dmabuf = device.dmabuf;
  } catch (const Error& error) {
    summary.unavailable = error.what();
  }
  return summary;
}

}  // namespace gdrbench
