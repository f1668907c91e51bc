#include "cuda/vmm_memory.hpp"

#include <cuda.h>
#include <fmt/format.h>

#include <bit>

#include "cuda/device.hpp"
#include "cuda/driver_api.hpp"
#include "cuda/pointer.hpp"

namespace gdrbench::cuda {
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

}  // namespace gdrbench::cuda
