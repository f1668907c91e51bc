#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "memory/device_range.hpp"
#include "memory/memory.hpp"

// The kernel's <linux/magic.h> since 5.3; missing from the headers of older distributions.
#ifndef DMA_BUF_MAGIC
#define DMA_BUF_MAGIC 0x444d4142
#endif

namespace gdrbench::softverbs {
namespace {

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

}  // namespace gdrbench::softverbs
