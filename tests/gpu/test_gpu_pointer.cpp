#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <memory>

#include "cuda/device.hpp"
#include "cuda/pointer.hpp"
#include "gdrbench/error.hpp"
#include "needs_gpu.hpp"

namespace gdrbench {
namespace {

using ::testing::HasSubstr;

template <class Call>
std::string refusal_of(Call call) {
  try {
    call();
  } catch (const Unavailable& error) {
    return error.what();
  }
  return "accepted";
}

class PointerRefusedForGdr : public NeedsGpu {};

TEST_F(PointerRefusedForGdr, IsManagedMemoryAndNamedSo) {
  cuda::use_device(0);
  void* raw = nullptr;
  ASSERT_EQ(cudaMallocManaged(&raw, 1 << 20), cudaSuccess);
  const std::unique_ptr<void, cudaError_t (*)(void*)> managed(raw, cudaFree);
  EXPECT_EQ(cuda::classify(raw), cuda::PointerKind::managed);
  EXPECT_THAT(refusal_of([&] { cuda::require_rdma_capable(raw); }),
              HasSubstr("managed memory (cudaMallocManaged) is refused for gdr"));
  EXPECT_THAT(refusal_of([&] { cuda::Dmabuf(0, static_cast<std::byte*>(raw), 1 << 20); }),
              HasSubstr("managed memory (cudaMallocManaged) is refused for gdr"));
}

TEST_F(PointerRefusedForGdr, IsHostMemoryOfEitherKind) {
  cuda::use_device(0);
  void* raw = nullptr;
  ASSERT_EQ(cudaMallocHost(&raw, 4096), cudaSuccess);
  const std::unique_ptr<void, cudaError_t (*)(void*)> pinned(raw, cudaFreeHost);
  const auto plain = std::make_unique<int>(0);
  EXPECT_THAT(refusal_of([&] { cuda::require_rdma_capable(raw); }), HasSubstr("registered with CUDA"));
  EXPECT_THAT(refusal_of([&] { cuda::require_rdma_capable(plain.get()); }),
              HasSubstr("host memory is no GPU memory"));
}

}  // namespace
}  // namespace gdrbench
