#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

/// GPU memory shared between the processes of one machine (CUDA IPC), for copies that pass no NIC.
namespace gdrbench::cuda {

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
