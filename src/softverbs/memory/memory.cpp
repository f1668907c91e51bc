#include "memory/memory.hpp"

#include <utility>

#include "memory/device_range.hpp"
#include "memory/host_memory.hpp"

namespace gdrbench::softverbs {

ResolvedMemory resolve_memory(std::uint64_t address, std::uint64_t length, bool writable) {
  if (auto device = resolve_device_range(address, length)) return *std::move(device);
  if (const int error = fault_in(address, length, writable)) return {nullptr, error};
  return {host_memory(), 0};
}

}  // namespace gdrbench::softverbs
