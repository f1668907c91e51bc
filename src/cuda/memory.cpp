#include "cuda/memory.hpp"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "cuda/device.hpp"
#include "cuda/driver_api.hpp"
#include "cuda/pointer.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::cuda {

std::uint64_t rdma_page_bytes() {
  static const auto host_page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return std::max<std::uint64_t>(host_page, 64 << 10);
}

void FreeDeviceMemory::operator()(void* allocation) const noexcept {
  log_runtime_failure(cudaFree(allocation), "freeing GPU memory");
}

DeviceMemory::DeviceMemory(int gpu, std::uint64_t length) {
  use_device(gpu);
  // cudaMalloc aligns to 512 bytes only, so up to one page in front is left unused.
  const std::uint64_t page = rdma_page_bytes();
  const std::uint64_t padded = whole_units(length, page) + page;
  void* allocation = nullptr;
  check_runtime(cudaMalloc(&allocation, padded),
                fmt::format("cudaMalloc of {} bytes on GPU {}", padded, gpu));
  allocation_.reset(allocation);
  const auto first = reinterpret_cast<std::uintptr_t>(allocation);
  address_ = static_cast<std::byte*>(allocation) + ((page - first % page) % page);
  if (!set_sync_memops(address_))
    throw Unavailable(
        fmt::format("the CUDA driver refuses SYNC_MEMOPS for cudaMalloc memory of GPU {}", gpu));
}

namespace {

/// Looked up together, once: a destructor must not find a function missing.
struct Driver {
  decltype(&cuMemGetAllocationGranularity) granularity =
      driver_function<decltype(cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity");
  decltype(&cuMemCreate) create = driver_function<decltype(cuMemCreate)>("cuMemCreate");
  decltype(&cuMemRelease) release = driver_function<decltype(cuMemRelease)>("cuMemRelease");
  decltype(&cuMemAddressReserve) reserve =
      driver_function<decltype(cuMemAddressReserve)>("cuMemAddressReserve");
  decltype(&cuMemAddressFree) free_addresses =
      driver_function<decltype(cuMemAddressFree)>("cuMemAddressFree");
  decltype(&cuMemMap) map = driver_function<decltype(cuMemMap)>("cuMemMap");
  decltype(&cuMemUnmap) unmap = driver_function<decltype(cuMemUnmap)>("cuMemUnmap");
  decltype(&cuMemSetAccess) set_access = driver_function<decltype(cuMemSetAccess)>("cuMemSetAccess");
};
const Driver& driver() {
  static const Driver functions;
  return functions;
}

CUdeviceptr device_pointer(void* address) {
  return reinterpret_cast<CUdeviceptr>(address);
}

CUmemAllocationProp properties_for(int gpu) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device_handle(gpu);
  // A request only: require_rdma_capable() looks at what became of it.
  properties.allocFlags.gpuDirectRDMACapable =
      device_has(gpu, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED) ? 1 : 0;
  return properties;
}

std::uint64_t granule_bytes(int gpu, const CUmemAllocationProp& properties) {
  std::size_t granule = 0;
  check_driver(driver().granularity(&granule, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
               fmt::format("cuMemGetAllocationGranularity of GPU {}", gpu));
  return granule;
}

/// Physical memory on its way into a mapping, which then keeps it alive.
class Allocation {
 public:
  Allocation(int gpu, std::uint64_t length, const CUmemAllocationProp& properties) {
    check_driver(driver().create(&handle_, length, &properties, 0),
                 fmt::format("cuMemCreate of {} bytes on GPU {}", length, gpu));
  }
  ~Allocation() { log_driver_failure(driver().release(handle_), "releasing GPU memory"); }
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;
  CUmemGenericAllocationHandle handle() const { return handle_; }

 private:
  CUmemGenericAllocationHandle handle_ = 0;
};

}  // namespace

void UnmapVmmMemory::operator()(void* address) const noexcept {
  log_driver_failure(driver().unmap(device_pointer(address), length), "unmapping GPU memory");
  log_driver_failure(driver().free_addresses(device_pointer(address), length), "freeing GPU addresses");
}

VmmMemory::VmmMemory(int gpu, std::uint64_t length) {
  use_device(gpu);
  const CUmemAllocationProp properties = properties_for(gpu);
  const std::uint64_t padded = whole_units(length, granule_bytes(gpu, properties));
  const Allocation allocation(gpu, padded, properties);

  CUdeviceptr address = 0;
  check_driver(driver().reserve(&address, padded, 0, 0, 0),
               fmt::format("cuMemAddressReserve of {} bytes on GPU {}", padded, gpu));
  if (const CUresult code = driver().map(address, padded, 0, allocation.handle(), 0); code != CUDA_SUCCESS) {
    log_driver_failure(driver().free_addresses(address, padded), "freeing GPU addresses");
    check_driver(code, fmt::format("cuMemMap of {} bytes on GPU {}", padded, gpu));
  }
  mapping_ = {std::bit_cast<void*>(address), UnmapVmmMemory{padded}};

  const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  check_driver(driver().set_access(address, padded, &access, 1),
               fmt::format("cuMemSetAccess on {} bytes of GPU {}", padded, gpu));
  // Drivers may refuse it for this kind of memory. Our own copies wait for their stream in any case.
  set_sync_memops(mapping_.get());
}

void FreePinnedMemory::operator()(void* address) const noexcept {
  log_runtime_failure(cudaFreeHost(address), "freeing pinned host memory");
}

PinnedMemory::PinnedMemory(int gpu, std::uint64_t length) {
  use_device(gpu);
  void* address = nullptr;
  check_runtime(cudaHostAlloc(&address, length, cudaHostAllocPortable | cudaHostAllocMapped),
                fmt::format("cudaHostAlloc of {} bytes", length),
                "the limit on locked memory (ulimit -l) or the host's free memory may be too small");
  address_.reset(address);
  std::memset(address, 0, length);
}

void UnregisterHostMemory::operator()(void* address) const noexcept {
  log_runtime_failure(cudaHostUnregister(address), "cudaHostUnregister");
}

HostRegistration::HostRegistration(int gpu, std::byte* address, std::uint64_t length) {
  use_device(gpu);
  check_runtime(cudaHostRegister(address, length, cudaHostRegisterPortable),
                fmt::format("cudaHostRegister of {} bytes of host memory", length),
                "the limit on locked memory (ulimit -l) or the host's free memory may be too small");
  address_.reset(address);
}

}  // namespace gdrbench::cuda
