#include "cuda/peer_link.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "cuda/device.hpp"
#include "cuda/driver_api.hpp"

namespace gdrbench::cuda {
namespace {

int p2p_attribute(int gpu, int other, cudaDeviceP2PAttr which) {
  int value = 0;
  check_runtime(cudaDeviceGetP2PAttribute(&value, which, gpu, other),
                fmt::format("cudaDeviceGetP2PAttribute of GPUs {} and {}", gpu, other));
  return value;
}

}  // namespace

PeerLink peer_link(int gpu, int other) {
  if (gpu == other)
    return {.can_access = true, .native_atomics = true, .performance_rank = 0, .kind = "same gpu"};
  int can = 0;
  check_runtime(cudaDeviceCanAccessPeer(&can, gpu, other),
                fmt::format("cudaDeviceCanAccessPeer of GPUs {} and {}", gpu, other));
  PeerLink link{.can_access = can != 0};
  if (!link.can_access) return link;
  link.native_atomics = p2p_attribute(gpu, other, cudaDevP2PAttrNativeAtomicSupported) != 0;
  link.performance_rank = p2p_attribute(gpu, other, cudaDevP2PAttrPerformanceRank);
  link.kind = link.native_atomics ? "nvlink" : "pcie";
  return link;
}

int find_gpu(const std::string& uuid) {
  const int count = device_count();
  for (int gpu = 0; gpu < count; ++gpu)
    if (device_uuid(gpu) == uuid) return gpu;
  return -1;
}

}  // namespace gdrbench::cuda
