#pragma once

#include <string>

namespace gdrbench::cuda {

/// How one GPU of this machine reaches the memory of another, as the driver tells it.
struct PeerLink {
  bool can_access = false;      ///< cudaDeviceCanAccessPeer; always so for a GPU and itself
  bool native_atomics = false;  ///< cudaDevP2PAttrNativeAtomicSupported
  int performance_rank = 0;     ///< cudaDevP2PAttrPerformanceRank; 0 is the best
  /// "same gpu"; "nvlink" where the link carries native atomics, which NVLink does and PCIe does not; else
  /// "pcie"; "none" without access.
  std::string kind = "none";
};

/// From `gpu` to `other`, whose contexts it does not make. Throws CudaError when one does not exist.
PeerLink peer_link(int gpu, int other);

/// The GPU of that UUID among those that this process may use; −1 when there is none.
int find_gpu(const std::string& uuid);

}  // namespace gdrbench::cuda
