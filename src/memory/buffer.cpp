#include <fmt/format.h>
#include <linux/mman.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>

#include "cuda/device.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/memory.hpp"
#include "gdrbench/size.hpp"
#include "memory/buffer_backing.hpp"

namespace gdrbench::memory {
namespace {

constexpr std::uint64_t huge_page_bytes = 2 << 20;

std::string attempt(std::uint64_t length) {
  return fmt::format("allocating {} bytes ({}) of host memory", length, format_size(length));
}

/// MemAvailable of /proc/meminfo in bytes; no limit where that cannot be read.
std::uint64_t available_bytes() {
  std::ifstream meminfo("/proc/meminfo");
  for (std::string line; std::getline(meminfo, line);) {
    unsigned long long kib = 0;
    if (std::sscanf(line.c_str(), "MemAvailable: %llu kB", &kib) == 1)
      return kib * 1024;  // NOLINT(cert-err34-c)
  }
  return std::numeric_limits<std::uint64_t>::max();
}

/// The kernel would promise more than it has and end some process later, perhaps not ours.
void require_available(std::uint64_t length) {
  const std::uint64_t available = available_bytes();
  if (length <= available) return;
  throw SystemError(
      ENOMEM, attempt(length),
      fmt::format("only {} bytes ({}) are available (MemAvailable in /proc/meminfo); use smaller sizes, "
                  "a lower depth or a smaller footprint",
                  available, format_size(available)));
}

std::uint64_t whole_pages(std::uint64_t length, std::uint64_t page) {
  if (length > std::numeric_limits<std::uint64_t>::max() - page)
    throw SystemError(EOVERFLOW, attempt(length));
  return (length + page - 1) / page * page;
}

std::byte* map(std::uint64_t length, int extra_flags) {
  void* const address = mmap(nullptr, length, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | extra_flags, -1, 0);
  return address == MAP_FAILED ? nullptr : static_cast<std::byte*>(address);
}

}  // namespace

HostMapping::HostMapping(std::uint64_t length, bool huge_pages) {
  require_available(length);
  if (huge_pages) {
    length_ = whole_pages(length, huge_page_bytes);
    address_ = map(length_, MAP_HUGETLB | MAP_HUGE_2MB);
    if (address_ != nullptr) return;
  }
  length_ = whole_pages(length, static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)));
  address_ = map(length_, 0);
  if (address_ == nullptr)
    throw SystemError(errno, attempt(length_),
                      "a limit on address space (ulimit -v) or on mappings may be too small");
}

HostMapping::~HostMapping() {
  if (munmap(address_, length_) != 0)
    std::fprintf(stderr, "unmapping %llu bytes of host memory: %s\n",
                 static_cast<unsigned long long>(length_), errno_name(errno).c_str());
}

}  // namespace gdrbench::memory

namespace gdrbench {

Buffer::Buffer(const BufferOptions& options) : options_(options), backing_(std::make_unique<Backing>()) {
  if (options.length == 0) throw UsageError("a buffer of 0 bytes was asked for; sizes start at 1");
  view_.length = options.length;
  view_.on_gpu = options.kind != MemoryKind::host;
  switch (options.kind) {
    case MemoryKind::host: {
      const auto& host = backing_->host.emplace(options.length, options.huge_pages);
      view_.address = host.address();
      if (options.pin_for_gpu && cuda::unavailable_reason().empty())
        backing_->pinned.emplace(options.gpu, host.address(), host.length());
      return;
    }
    case MemoryKind::cuda:
      view_.address = backing_->device.emplace(options.gpu, options.length).address();
      break;
    case MemoryKind::cuda_vmm:
      view_.address = backing_->vmm.emplace(options.gpu, options.length).address();
      break;
  }
  backing_->kernels.emplace(options.gpu);
  // A GPU that cannot export it still serves the staged paths, and gdr through a peer-memory module.
  try {
    const cuda::RdmaSupport support = cuda::rdma_support(options.gpu);
    view_.gpu_direct_rdma = support.gpu_direct_rdma;
    view_.gpu_dmabuf = support.dmabuf;
    const auto& dmabuf = backing_->dmabuf.emplace(options.gpu, view_.address, view_.length);
    view_.dmabuf_fd = dmabuf.fd();
    view_.dmabuf_offset = dmabuf.offset();
  } catch (const Error& error) {
    no_dmabuf_reason_ = error.what();
    view_.no_dmabuf_reason = no_dmabuf_reason_;
  }
}

Buffer::~Buffer() = default;

GpuSummary gpu_summary(int gpu) {
  GpuSummary summary;
  summary.backend = cuda::backend();
  try {
    summary.unavailable = cuda::unavailable_reason();
    summary.count = cuda::device_count();
    if (!summary.unavailable.empty()) return summary;
    const cuda::DeviceInfo device = cuda::device_info(gpu);
    summary.name = device.name;
    summary.uuid = device.uuid;
    summary.driver = device.driver;
    summary.pci_address = device.pci_address;
    summary.gpu_direct_rdma = device.gpu_direct_rdma;
    summary.dmabuf = device.dmabuf;
  } catch (const Error& error) {
    summary.unavailable = error.what();
  }
  return summary;
}

}  // namespace gdrbench
