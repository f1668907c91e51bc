#include "memory/memory.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <utility>

#include "memory/cuda_driver.hpp"
#include "memory/device_memory.hpp"

// The kernel's <linux/magic.h> since 5.3; missing from the headers of older distributions.
#ifndef DMA_BUF_MAGIC
#define DMA_BUF_MAGIC 0x444d4142
#endif

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

/// What CUDA knows about a range: device memory within one allocation; EFAULT for managed memory and for
/// device memory that no NIC can reach; EINVAL for a range that leaves its allocation. Nothing when the
/// address is no device's: memory of the host, registered with CUDA or not, or no CUDA in this process.
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

/// By the file system that holds every dma-buf; names under /proc/self/fd ("/dmabuf:…") can be had by any
/// file.
bool is_dmabuf(int descriptor) {
  struct statfs file_system {};
  return fstatfs(descriptor, &file_system) == 0 && file_system.f_type == DMA_BUF_MAGIC;
}

}  // namespace

ResolvedMemory resolve_dmabuf(int descriptor, std::uint64_t offset, std::uint64_t length,
                              std::uint64_t iova) {
  if (fcntl(descriptor, F_GETFD) < 0) return {nullptr, EBADF};
  if (!is_dmabuf(descriptor)) return {nullptr, EINVAL};
  // The only seeks that a dma-buf knows are those that tell its size; its position does not change.
  const off_t size = lseek(descriptor, 0, SEEK_END);
  std::uint64_t end = 0;
  if (length == 0 || size < 0 || __builtin_add_overflow(offset, length, &end) ||
      end > static_cast<std::uint64_t>(size))
    return {nullptr, EINVAL};
  auto device = resolve_device_range(iova, length);
  if (!device || device->memory == nullptr) return {nullptr, EOPNOTSUPP};
  return *std::move(device);
}

ResolvedMemory resolve_memory(std::uint64_t address, std::uint64_t length, bool writable) {
  if (auto device = resolve_device_range(address, length)) return *std::move(device);
  if (const int error = fault_in(address, length, writable)) return {nullptr, error};
  return {host_memory(), 0};
}

}  // namespace gdrbench::softverbs
