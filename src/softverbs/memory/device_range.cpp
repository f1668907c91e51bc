#include "memory/device_range.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "memory/cuda_driver.hpp"
#include "memory/device_memory.hpp"
#include "memory/pointer_attributes.hpp"

namespace gdrbench::softverbs {
namespace {

using cuda::attributes_of;
using cuda::PointerAttributes;

/// Memory of cuMemCreate is reachable only when it was made with the flag gpuDirectRDMACapable and the device
/// honours it, pool memory never unless its pool was; nvidia-peermem gets no pages for others. A driver too
/// old for the question knows only memory that is.
bool rdma_capable(const cuda::Driver& driver, std::uint64_t address) {
  int capable = 0;
  return driver.pointer_get_attribute(&capable, cuda::attribute_rdma_capable, address) != cuda::success ||
         capable != 0;
}

/// Where the memory that `address` lies in ends: the allocation, or what cuMemMap mapped at once, since the
/// range that the driver tells for that is the whole reservation, with holes where nothing is mapped. Of a
/// driver too old for the question the range has to do.
std::uint64_t end_of_memory(const cuda::Driver& driver, std::uint64_t address,
                            const PointerAttributes& memory) {
  cuda::DevicePointer base = 0;
  std::size_t bytes = 0;
  if (driver.pointer_get_attribute(&base, cuda::attribute_mapping_base, address) != cuda::success ||
      driver.pointer_get_attribute(&bytes, cuda::attribute_mapping_size, address) != cuda::success)
    return memory.range_end();
  return std::min(base + bytes, memory.range_end());
}

}  // namespace

std::optional<ResolvedMemory> resolve_device_range(std::uint64_t address, std::uint64_t length) {
  const cuda::Driver* driver = cuda::loaded_driver();
  if (driver == nullptr) return std::nullopt;
  const PointerAttributes first = attributes_of(*driver, address);
  if (first.is_managed != 0) return ResolvedMemory{nullptr, EFAULT};
  if (!first.on_device()) return std::nullopt;
  std::uint64_t end = 0;
  if (length == 0 || __builtin_add_overflow(address, length, &end)) return ResolvedMemory{nullptr, EINVAL};
  if (!rdma_capable(*driver, address)) return ResolvedMemory{nullptr, EFAULT};

  // Several mappings may make up what the program uses as one allocation; other memory belongs to a context,
  // and is an allocation of its own.
  std::uint64_t covered = end_of_memory(*driver, address, first);
  while (covered < end) {
    const PointerAttributes next = attributes_of(*driver, covered);
    const bool continues = first.context == nullptr && next.context == nullptr && next.on_device() &&
                           next.is_managed == 0 && next.ordinal == first.ordinal &&
                           rdma_capable(*driver, covered);
    const std::uint64_t next_end = continues ? end_of_memory(*driver, covered, next) : 0;
    if (next_end <= covered) return ResolvedMemory{nullptr, EINVAL};
    covered = next_end;
  }
  auto memory = DeviceMemory::of(*driver, first.context, first.ordinal);
  memory->ready(address);
  return ResolvedMemory{std::move(memory), 0};
}

}  // namespace gdrbench::softverbs
