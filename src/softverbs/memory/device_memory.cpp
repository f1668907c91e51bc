#include "memory/device_memory.hpp"

#include <map>
#include <utility>

namespace gdrbench::softverbs {

std::shared_ptr<DeviceMemory> DeviceMemory::of(const cuda::Driver& driver, cuda::Context context,
                                               int ordinal) {
  static std::mutex mutex;
  // Never destroyed, and holds nothing alive: a region may be deregistered while the process ends.
  static auto& known = *new std::map<std::pair<cuda::Context, int>, std::weak_ptr<DeviceMemory>>;
  const std::lock_guard lock(mutex);
  std::weak_ptr<DeviceMemory>& entry = known[{context, ordinal}];
  std::shared_ptr<DeviceMemory> memory = entry.lock();
  if (memory == nullptr) entry = memory = std::make_shared<DeviceMemory>(driver, context, ordinal);
  return memory;
}

void DeviceMemory::ready(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  engine_.ready(address);
}

int DeviceMemory::write(std::uint64_t address, std::span<const std::byte> from) const {
  const std::lock_guard lock(mutex_);
  return engine_.to_device(address, from);
}

int DeviceMemory::read(std::uint64_t address, std::span<std::byte> to) const {
  const std::lock_guard lock(mutex_);
  return engine_.to_host(to, address);
}

int DeviceMemory::fetch_add(std::uint64_t address, std::uint64_t add, std::uint64_t& before) const {
  const std::lock_guard lock(mutex_);
  std::uint64_t word = 0;
  if (const int error = engine_.to_host(std::as_writable_bytes(std::span(&word, 1)), address)) return error;
  before = word;
  word += add;
  return engine_.to_device(address, std::as_bytes(std::span(&word, 1)));
}

int DeviceMemory::compare_swap(std::uint64_t address, std::uint64_t compare, std::uint64_t swap,
                               std::uint64_t& before) const {
  const std::lock_guard lock(mutex_);
  std::uint64_t word = 0;
  if (const int error = engine_.to_host(std::as_writable_bytes(std::span(&word, 1)), address)) return error;
  before = word;
  return word == compare ? engine_.to_device(address, std::as_bytes(std::span(&swap, 1))) : 0;
}

}  // namespace gdrbench::softverbs
