#include "cuda/device.hpp"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "cuda/driver_api.hpp"
#include "cuda/error_hint.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::cuda {
namespace {

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string find_reason() {
  // Both are read once, when the driver starts. Beside a kernel that waits for the host, a stream that shares
  // its hardware queue would wait for ever (32 queues are the most), and so would loading another kernel.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
    return "no CUDA driver (libcuda.so.1 is not installed, or not mapped into this container)";
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaSuccess && count > 0) return "";
  cudaGetLastError();  // later calls must not find this one
  if (code == cudaErrorInsufficientDriver)
    return fmt::format("the CUDA driver is too old: it supports CUDA {}, this build needs {}",
                       version_text(driver), version_text(CUDART_VERSION));
  if (code == cudaSuccess || code == cudaErrorNoDevice) {
    const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
    return fmt::format("the CUDA driver finds no GPU ({})",
                       visible != nullptr ? fmt::format("CUDA_VISIBLE_DEVICES is '{}'", visible)
                                          : "is one mapped into this container? look at nvidia-smi");
  }
  const std::string hint = error_hint(code);
  return fmt::format("cudaGetDeviceCount: {} ({}){}{}", cudaGetErrorName(code), cudaGetErrorString(code),
                     hint.empty() ? "" : "; ", hint);
}

}  // namespace

std::string_view backend() {
  return "cuda";
}

const std::string& unavailable_reason() {
  static const std::string reason = find_reason();
  return reason;
}

namespace {

int attribute(int gpu, cudaDeviceAttr which, const char* name) {
  int value = 0;
  check_runtime(cudaDeviceGetAttribute(&value, which, gpu), fmt::format("reading {} of GPU {}", name, gpu));
  return value;
}

/// The words of a line look like "NVRM version: NVIDIA UNIX … Kernel Module  580.159.04  Release Build …".
std::string version_in(std::istream& line) {
  for (std::string word; line >> word;)
    if (word.find('.') != std::string::npos && std::all_of(word.begin(), word.end(), [](unsigned char c) {
          return std::isdigit(c) != 0 || c == '.';
        }))
      return word;
  return "";
}

std::string driver_version() {
  for (const char* path : {"/sys/module/nvidia/version", "/proc/driver/nvidia/version"}) {
    std::ifstream file(path);
    if (std::string found = version_in(file); !found.empty()) return found;
  }
  int version = 0;
  check_runtime(cudaDriverGetVersion(&version), "cudaDriverGetVersion");
  return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
}

void require_gpu(int gpu) {
  if (!unavailable_reason().empty()) throw Unavailable(unavailable_reason());
  const int count = device_count();
  if (gpu >= 0 && gpu < count) return;
  throw Unavailable(fmt::format("GPU {} does not exist: this machine shows {} to us, numbered from 0", gpu,
                                count == 1 ? "1 GPU" : fmt::format("{} GPUs", count)));
}

}  // namespace

int device_count() {
  if (!unavailable_reason().empty()) return 0;
  int count = 0;
  check_runtime(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  return count;
}

DeviceInfo device_info(int gpu) {
  require_gpu(gpu);
  DeviceInfo info;
  std::array<char, 256> text{};
  check_driver(driver_function<decltype(cuDeviceGetName)>("cuDeviceGetName")(text.data(), text.size() - 1,
                                                                             device_handle(gpu)),
               fmt::format("cuDeviceGetName of GPU {}", gpu));
  info.name = text.data();
  info.uuid = device_uuid(gpu);
  check_runtime(cudaDeviceGetPCIBusId(text.data(), text.size() - 1, gpu),
                fmt::format("cudaDeviceGetPCIBusId of GPU {}", gpu));
  info.pci_address = text.data();
  // sysfs, with which it is compared, writes it in lower case.
  std::transform(info.pci_address.begin(), info.pci_address.end(), info.pci_address.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  info.driver = driver_version();
  const RdmaSupport support = rdma_support(gpu);
  info.uuid = device_uuid(gpu);
  info.gpu_direct_rdma = support.gpu_direct_rdma;
  info.dmabuf = support.dmabuf;
  info.vmm_rdma = support.vmm_rdma;
  info.writes_ordering = write_ordering(gpu).scope;
  return info;
}

RdmaSupport rdma_support(int gpu) {
  require_gpu(gpu);
  return {.gpu_direct_rdma = device_has(gpu, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED),
          .dmabuf = device_has(gpu, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED),
          .vmm_rdma = device_has(gpu, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED)};
}

std::string device_uuid(int gpu) {
  require_gpu(gpu);
  CUuuid id{};
  check_driver(driver_function<decltype(cuDeviceGetUuid)>("cuDeviceGetUuid")(&id, device_handle(gpu)),
               fmt::format("cuDeviceGetUuid of GPU {}", gpu));
  std::string text = "GPU";
  for (std::size_t i = 0; i < sizeof id.bytes; ++i)
    text += fmt::format("{}{:02x}", i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                        static_cast<unsigned char>(id.bytes[i]));
  return text;
}

std::string_view WriteOrdering::name() const {
  if (scope >= cudaGPUDirectRDMAWritesOrderingAllDevices) return "all_devices";
  return scope >= cudaGPUDirectRDMAWritesOrderingOwner ? "owner" : "none";
}

bool WriteOrdering::needs_flush() const {
  return scope < cudaGPUDirectRDMAWritesOrderingOwner;
}

WriteOrdering write_ordering(int gpu) {
  require_gpu(gpu);
  const int options = attribute(gpu, cudaDevAttrGPUDirectRDMAFlushWritesOptions,
                                "cudaDevAttrGPUDirectRDMAFlushWritesOptions");
  return {.scope = attribute(gpu, cudaDevAttrGPUDirectRDMAWritesOrdering,
                             "cudaDevAttrGPUDirectRDMAWritesOrdering"),
          .host_flush = (options & cudaFlushGPUDirectRDMAWritesOptionHost) != 0};
}

void use_device(int gpu) {
  require_gpu(gpu);
  check_runtime(cudaSetDevice(gpu), fmt::format("cudaSetDevice({})", gpu),
                "a GPU in exclusive mode that another process holds, or one out of memory, refuses this");
}

void share_multiprocessors(const void* kernel) {
  check_runtime(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                     cudaSharedmemCarveoutMaxShared),
                "setting how a kernel divides a multiprocessor's memory",
                "this build may hold no code for a GPU of this age");
}

void flush_rdma_writes(int gpu) {
  use_device(gpu);
  const WriteOrdering ordering = write_ordering(gpu);
  // No NIC can write to the memory of a device that needs a flush and has none.
  if (ordering.needs_flush() && ordering.host_flush) force_flush(gpu);
}

void force_flush(int gpu) {
  const cudaError_t code = cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
                                                              cudaFlushGPUDirectRDMAWritesToOwner);
  if (code != cudaSuccess)
    check_runtime(code, fmt::format("cudaDeviceFlushGPUDirectRDMAWrites on GPU {}", gpu));
}

}  // namespace gdrbench::cuda
