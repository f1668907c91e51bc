#include "memory/copier.hpp"

#include <cstring>
#include <limits>

#include "cuda/resident_copy.hpp"
#include "memory/kernel_copier.hpp"
#include "memory/stream_copier.hpp"

namespace gdrbench::memory {
namespace {

class CpuCopier final : public Copier {
 public:
  void submit(std::byte* destination, const std::byte* source, std::uint64_t length) override {
    std::memcpy(destination, source, length);
    ++submitted_;
  }
  std::uint64_t finished() override { return submitted_; }
};

}  // namespace

std::unique_ptr<Copier> make_copier(const CopierOptions& options) {
  if (options.payload == MemoryKind::host) return std::make_unique<CpuCopier>();
  if (options.engine == CopyEngine::kernel && !options.pageable)
    return std::make_unique<KernelCopier>(options.gpu, options.towards);
  return std::make_unique<StreamCopier>(options);
}

std::uint64_t most_bytes(CopyEngine engine) {
  if (engine == CopyEngine::kernel) return cuda::ResidentCopy::most_bytes;
  return std::numeric_limits<std::uint64_t>::max();
}

}  // namespace gdrbench::memory
