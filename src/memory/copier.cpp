#include "memory/copier.hpp"

#include <cstring>
#include <limits>

#include "cuda/resident_copy.hpp"
#include "memory/gdrcopy.hpp"
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

/// The copies are done when submit returns.
class GdrCopier final : public Copier {
 public:
  explicit GdrCopier(const CopierOptions& options)
      : towards_(options.towards), mapping_(options.range.data(), options.range.size()) {}
  void submit(std::byte* destination, const std::byte* source, std::uint64_t length) override {
    towards_ == Towards::gpu ? mapping_.write(destination, source, length)
                             : mapping_.read(destination, source, length);
    ++submitted_;
  }
  std::uint64_t finished() override { return submitted_; }

 private:
  Towards towards_;
  GdrMapping mapping_;
};

}  // namespace

std::unique_ptr<Copier> make_copier(const CopierOptions& options) {
  if (options.payload == MemoryKind::host) return std::make_unique<CpuCopier>();
  if (options.engine == CopyEngine::kernel && !options.pageable)
    return std::make_unique<KernelCopier>(options.gpu, options.towards);
  if (options.engine == CopyEngine::gdrcopy) return std::make_unique<GdrCopier>(options);
  return std::make_unique<StreamCopier>(options);
}

std::uint64_t most_bytes(CopyEngine engine) {
  if (engine == CopyEngine::kernel) return cuda::ResidentCopy::most_bytes;
  return std::numeric_limits<std::uint64_t>::max();
}

}  // namespace gdrbench::memory
