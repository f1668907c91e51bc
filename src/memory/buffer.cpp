#include "cuda/backend.hpp"
#include "cuda/device.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/memory.hpp"
#include "memory/buffer_backing.hpp"

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

}  // namespace gdrbench
