#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "cuda/stream.hpp"

namespace gdrbench::cuda {

/// How one GPU of this machine reaches the memory of another, as the driver tells it.
struct P2pLink {
  bool can_access = false;      ///< cudaDeviceCanAccessPeer; always so for a GPU and itself
  bool native_atomics = false;  ///< cudaDevP2PAttrNativeAtomicSupported
  int performance_rank = 0;     ///< cudaDevP2PAttrPerformanceRank; 0 is the best
  /// "same gpu"; "nvlink" where the link carries native atomics, which NVLink does and PCIe does not; else
  /// "pcie"; "none" without access.
  std::string kind = "none";
};

/// From `gpu` to `other`, whose contexts it does not make. Throws CudaError when one does not exist.
P2pLink p2p_link(int gpu, int other);

/// The GPU of that UUID among those that this process may use; −1 when there is none.
int find_gpu(const std::string& uuid);

/// cudaMemcpyPeerAsync from one GPU to another (or the same) within this process, timed by both clocks. Peer
/// access is enabled where the pair has it; without it the driver stages the copies through host memory.
class P2pCopy {
 public:
  struct Times {
    double host_s = 0;    ///< from before the first copy is started until the host knows that all are done
    double device_s = 0;  ///< between CUDA events around the copies
  };

  /// Throws Unavailable, CudaError.
  P2pCopy(int gpu, int other);
  /// `count` copies one after another from `gpu`'s memory to `other`'s. Throws CudaError.
  Times run(std::byte* destination, const std::byte* source, std::uint64_t length, std::uint64_t count);

 private:
  int gpu_ = 0, other_ = 0;
  Stream stream_;  ///< the source's
  std::unique_ptr<void, DestroyEvent> before_, after_;
};

/// GPU memory shared between the processes of one machine (CUDA IPC), for copies that pass no NIC.

/// A cudaIpcMemHandle_t.
using IpcHandle = std::array<std::uint8_t, 64>;

/// What another process needs to open the allocation around an address.
struct IpcExport {
  IpcHandle handle{};
  std::uint64_t offset = 0;            ///< of the address in its allocation, bytes
  std::uint64_t allocation_bytes = 0;  ///< from its start
};

/// `address` lies in cudaMalloc memory of the GPU. The allocation must outlive every mapping that another
/// process makes of it. Throws Unavailable with the reason when the memory or the machine cannot be shared.
IpcExport export_memory(int gpu, const std::byte* address);

struct CloseIpcMemory {
  int gpu = 0;
  void operator()(void* base) const noexcept;
};

/// Memory of another process, of this or another GPU, mapped for copies by `gpu`.
class ImportedMemory {
 public:
  /// Throws Unavailable when the driver refuses: the other process is gone, on another host, or the one that
  /// asks.
  ImportedMemory(int gpu, const IpcExport& exported);
  std::byte* address() const { return static_cast<std::byte*>(base_.get()) + offset_; }

 private:
  std::unique_ptr<void, CloseIpcMemory> base_;
  std::uint64_t offset_ = 0;
};

}  // namespace gdrbench::cuda
