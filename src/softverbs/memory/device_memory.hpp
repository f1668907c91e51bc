#pragma once

#include <memory>
#include <mutex>

#include "memory/copy_engine.hpp"
#include "memory/memory.hpp"

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
