#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "memory/cuda_driver.hpp"
#include "memory/memory.hpp"

namespace gdrbench::softverbs::cuda {

/// Copies between host and device memory on a stream of its own, which no work of the program waits for or is
/// waited for by, through two pinned buffers. Leaves the calling thread's current context, and a graph that
/// it captures, as they are. What it needs is made by ready(), else at the first copy. Not thread-safe.
/// Functions return 0, or EIO when the driver refuses or the memory is gone.
class CopyEngine {
 public:
  /// Works in `context`, or in the primary context of device `ordinal` where that is null.
  CopyEngine(const Driver& driver, Context context, int ordinal);
  /// Does nothing once the context is gone, or the driver, as at the end of the process.
  ~CopyEngine();
  CopyEngine(const CopyEngine&) = delete;

  /// Makes what copies to and from `address` will need: later, a kernel that waits for them may be running,
  /// and allocations wait for kernels. What cannot be made now is tried again at the first copy.
  void ready(DevicePointer address);
  /// The last byte arrives last.
  int to_device(DevicePointer to, std::span<const std::byte> from);
  int to_host(std::span<std::byte> to, DevicePointer from);

 private:
  bool reachable(DevicePointer address);
  bool resources_alive() const;
  bool prepare();
  bool start_to_device(DevicePointer to, const std::byte* from, std::size_t bytes);
  bool synchronize() { return driver_.stream_synchronize(stream_) == success; }

  const Driver& driver_;
  const Context owner_;  ///< of the memory; null: none
  const int ordinal_;
  Context context_;  ///< that copies are made in; null: the primary one, not retained yet
  Stream stream_ = nullptr;
  void* pinned_ = nullptr;
  std::unique_ptr<std::byte[]> pageable_;  ///< instead of `pinned_`, where that cannot be had
  std::array<std::byte*, 2> buffers_{};
};

}  // namespace gdrbench::softverbs::cuda

namespace gdrbench::softverbs {

/// Memory of a GPU, reached by its copy engine: the CPU has no address for it. One object serves all regions
/// of a context, and lives as long as they do.
class DeviceMemory final : public Memory {
 public:
  /// That of `context`, or of the primary context of device `ordinal` where that is null.
  static std::shared_ptr<DeviceMemory> of(const cuda::Driver& driver, cuda::Context context, int ordinal);

  DeviceMemory(const cuda::Driver& driver, cuda::Context context, int ordinal)
      : engine_(driver, context, ordinal) {}

  /// As CopyEngine::ready.
  void ready(std::uint64_t address) const;
  bool on_host() const override { return false; }
  int write(std::uint64_t address, std::span<const std::byte> from) const override;
  int read(std::uint64_t address, std::span<std::byte> to) const override;
  int fetch_add(std::uint64_t address, std::uint64_t add, std::uint64_t& before) const override;
  int compare_swap(std::uint64_t address, std::uint64_t compare, std::uint64_t swap,
                   std::uint64_t& before) const override;

 private:
  mutable std::mutex mutex_;
  mutable cuda::CopyEngine engine_;
};

}  // namespace gdrbench::softverbs
