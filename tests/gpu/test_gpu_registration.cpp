#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <memory>

#include "cuda/device.hpp"
#include "cuda/driver_api.hpp"
#include "gdrbench/error.hpp"
#include "needs_gpu.hpp"
#include "verbs/device.hpp"
#include "wire/verbs_wire.hpp"

// Memory that gdrbench does not allocate, given to the NIC as GPU memory: on the first RDMA device, a NIC, or
// softverbs0 where it is preloaded.
namespace gdrbench::wire {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t length = 2 << 20;

class GpuRegistration : public NeedsGpu, public testing::WithParamInterface<RegisterBy> {
 protected:
  void SetUp() override {
    NeedsGpu::SetUp();
    if (IsSkipped()) return;
    if (verbs::list_devices().empty()) GTEST_SKIP() << verbs::no_device_reason();
    cuda::use_device(0);
  }
  static std::string refusal_of(void* memory) {
    VerbsWire wire(registering_by(GetParam()), WireLimits{}, VerbsWireRole::active);
    try {
      wire.register_memory({.address = static_cast<std::byte*>(memory), .length = length, .on_gpu = true});
    } catch (const Unavailable& error) {
      return error.what();
    }
    return "accepted";
  }
};

TEST_P(GpuRegistration, of_managed_memory_is_refused_by_name) {
  void* raw = nullptr;
  ASSERT_EQ(cudaMallocManaged(&raw, length), cudaSuccess);
  const std::unique_ptr<void, cudaError_t (*)(void*)> managed(raw, cudaFree);
  EXPECT_THAT(refusal_of(raw), HasSubstr("managed memory (cudaMallocManaged) is refused for gdr"));
}

TEST_P(GpuRegistration, of_host_memory_of_either_kind_is_refused_by_name) {
  void* raw = nullptr;
  ASSERT_EQ(cudaMallocHost(&raw, length), cudaSuccess);
  const std::unique_ptr<void, cudaError_t (*)(void*)> pinned(raw, cudaFreeHost);
  EXPECT_THAT(refusal_of(raw),
              HasSubstr("registered with CUDA (cudaMallocHost, cudaHostRegister) is no GPU"));
  const Buffer plain(BufferOptions{.length = length});
  EXPECT_THAT(refusal_of(plain.data()), HasSubstr("host memory is no GPU memory"));
}

/// Memory of cuMemCreate that was not asked to be RDMA capable.
class OrdinaryVmmMemory {
 public:
  OrdinaryVmmMemory() {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = cuda::device_handle(0)};
    call<decltype(cuMemCreate)>("cuMemCreate", &handle_, length, &properties, 0ULL);
    call<decltype(cuMemAddressReserve)>("cuMemAddressReserve", &address_, length, 0UL, CUdeviceptr{0}, 0ULL);
    call<decltype(cuMemMap)>("cuMemMap", address_, length, 0UL, handle_, 0ULL);
    const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    call<decltype(cuMemSetAccess)>("cuMemSetAccess", address_, length, &access, 1UL);
  }
  ~OrdinaryVmmMemory() {
    cuda::driver_function<decltype(cuMemUnmap)>("cuMemUnmap")(address_, length);
    cuda::driver_function<decltype(cuMemAddressFree)>("cuMemAddressFree")(address_, length);
    cuda::driver_function<decltype(cuMemRelease)>("cuMemRelease")(handle_);
  }
  OrdinaryVmmMemory(const OrdinaryVmmMemory&) = delete;
  OrdinaryVmmMemory& operator=(const OrdinaryVmmMemory&) = delete;

  void* address() const { return reinterpret_cast<void*>(address_); }
  bool is_rdma_capable() const {
    int capable = 0;
    call<decltype(cuPointerGetAttribute)>("cuPointerGetAttribute", &capable,
                                          CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, address_);
    return capable != 0;
  }

 private:
  template <class Function, class... Arguments>
  static void call(const char* name, Arguments... arguments) {
    cuda::check_driver(cuda::driver_function<Function>(name)(arguments...), name);
  }
  CUmemGenericAllocationHandle handle_ = 0;
  CUdeviceptr address_ = 0;
};

TEST_P(GpuRegistration, of_vmm_memory_that_is_not_rdma_capable_is_refused_whatever_the_way) {
  const OrdinaryVmmMemory memory;
  if (memory.is_rdma_capable() || !summary_.gpu_direct_rdma) return;  // nothing to refuse on this GPU
  EXPECT_THAT(refusal_of(memory.address()), HasSubstr("not GPUDirect RDMA capable"));
}

std::string way_name(const testing::TestParamInfo<RegisterBy>& info) {
  return std::string(to_string(info.param));
}
INSTANTIATE_TEST_SUITE_P(Ways, GpuRegistration,
                         testing::Values(RegisterBy::automatic, RegisterBy::dmabuf, RegisterBy::peermem),
                         way_name);

}  // namespace
}  // namespace gdrbench::wire
