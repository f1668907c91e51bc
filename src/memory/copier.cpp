#include "memory/copier.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

#include "base/ring.hpp"
#include "cuda/flagged_words.hpp"
#include "cuda/resident_copy.hpp"
#include "cuda/stream.hpp"
#include "gdrbench/error.hpp"
#include "memory/gdrcopy.hpp"

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

/// By the GPU's copy engine, over several streams in turn: the engine then goes on with one while the next
/// copy of another is set up.
class StreamCopier final : public Copier {
 public:
  explicit StreamCopier(const CopierOptions& options);
  /// The memory may go as soon as the copier is gone.
  ~StreamCopier() override;
  StreamCopier(const StreamCopier&) = delete;
  StreamCopier& operator=(const StreamCopier&) = delete;

  void submit(std::byte* destination, const std::byte* source, std::uint64_t length) override;
  std::uint64_t finished() override;

 private:
  int gpu_;
  cuda::CopyKind kind_;
  bool pageable_;
  std::vector<cuda::Stream> streams_;
  std::vector<cuda::Event> spare_;
  Ring<cuda::Event> in_flight_;  ///< one a copy, in the order of submission
  std::uint64_t finished_ = 0;
};

StreamCopier::StreamCopier(const CopierOptions& options)
    : gpu_(options.gpu),
      kind_(options.towards == Towards::gpu ? cuda::CopyKind::host_to_gpu : cuda::CopyKind::gpu_to_host),
      pageable_(options.pageable) {
  for (unsigned i = 0; i < std::max(1U, options.streams); ++i) streams_.emplace_back(gpu_);
  // Made here so that the measured loop makes none, unless more copies than this are in flight.
  constexpr int usual_depth = 64;
  for (int i = 0; i < usual_depth; ++i) spare_.emplace_back(gpu_);
}

StreamCopier::~StreamCopier() {
  try {
    for (cuda::Stream& stream : streams_) stream.wait();
  } catch (const Error& error) {
    std::fprintf(stderr, "ending a copier: %s\n", error.what());
  }
}

void StreamCopier::submit(std::byte* destination, const std::byte* source, std::uint64_t length) {
  cuda::Stream& stream = streams_[submitted_++ % streams_.size()];
  stream.copy(destination, source, length, kind_);
  if (pageable_) {
    stream.wait();
    ++finished_;
    return;
  }
  if (spare_.empty()) spare_.emplace_back(gpu_);
  stream.record(spare_.back());
  in_flight_.push_back(std::move(spare_.back()));
  spare_.pop_back();
}

std::uint64_t StreamCopier::finished() {
  while (!in_flight_.empty() && in_flight_.front().done()) {
    spare_.push_back(in_flight_.take_front());
    ++finished_;
  }
  return finished_;
}

/// By a kernel that stays on the GPU between start() and rest(): small pieces only, and those fast.
class KernelCopier final : public Copier {
 public:
  KernelCopier(int gpu, Towards towards);
  ~KernelCopier() override { rest(); }
  KernelCopier(const KernelCopier&) = delete;
  KernelCopier& operator=(const KernelCopier&) = delete;

  void start() override;
  bool has_room() const override { return submitted_ - finished_ < cuda::ResidentCopy::slots; }
  /// `length` ≤ cuda::ResidentCopy::max_bytes. The host side is pinned.
  void submit(std::byte* destination, const std::byte* source, std::uint64_t length) override;
  std::uint64_t finished() override;
  void rest() noexcept override;

 private:
  /// Orders have numbers of their own, from 1 on: ending the kernel takes one, too.
  void order(const cuda::ResidentCopy::Order& order);

  struct Piece {
    std::byte* destination = nullptr;
    std::uint64_t length = 0;
    std::uint64_t order = 0;
  };
  Piece& piece(std::uint64_t number) { return pieces_[number % pieces_.size()]; }

  Towards towards_;
  cuda::ResidentCopy kernel_;
  std::array<Piece, cuda::ResidentCopy::slots> pieces_;
  std::uint64_t orders_ = 0;
  std::uint64_t finished_ = 0;
  std::uint64_t taken_ = 0;  ///< bytes of the piece that finishes next, towards the host
  std::uint32_t looks_ = 0;  ///< since the kernel was last seen healthy
  bool running_ = false;
};

cuda::CopyKind kind_of(Towards towards) {
  return towards == Towards::gpu ? cuda::CopyKind::host_to_gpu : cuda::CopyKind::gpu_to_host;
}

KernelCopier::KernelCopier(int gpu, Towards towards) : towards_(towards), kernel_(gpu, kind_of(towards)) {}

void KernelCopier::start() {
  if (running_) return;
  kernel_.start(orders_ + 1);
  running_ = true;
}

void KernelCopier::submit(std::byte* destination, const std::byte* source, std::uint64_t length) {
  const bool in = towards_ == Towards::gpu;
  piece(submitted_++) = {.destination = destination, .length = length, .order = orders_ + 1};
  order({.gpu_address = reinterpret_cast<std::uintptr_t>(in ? destination : source),
         .host_address = reinterpret_cast<std::uintptr_t>(in ? source : destination),
         .length = static_cast<std::uint32_t>(length),
         .unused = 0});
}

void KernelCopier::order(const cuda::ResidentCopy::Order& order) {
  std::byte bytes[sizeof order];
  std::memcpy(bytes, &order, sizeof order);
  // What is to be copied was written before.
  std::atomic_thread_fence(std::memory_order_release);
  ++orders_;
  cuda::write_flagged(kernel_.order(orders_), bytes, sizeof bytes, static_cast<std::uint32_t>(orders_));
}

std::uint64_t KernelCopier::finished() {
  constexpr std::uint32_t looks_between_checks = 1 << 20;
  for (; finished_ < submitted_; ++finished_) {
    const Piece& next = piece(finished_);
    bool there = false;
    if (towards_ == Towards::gpu) {
      there = kernel_.arrived() >= next.order;
    } else {
      taken_ = cuda::read_flagged(next.destination, kernel_.data(next.order), next.length,
                                  static_cast<std::uint32_t>(next.order), taken_);
      there = taken_ == next.length;
    }
    if (!there) {
      if (++looks_ % looks_between_checks == 0) kernel_.check();
      break;
    }
    taken_ = 0;
  }
  return finished_;
}

void KernelCopier::rest() noexcept {
  if (!running_) return;
  running_ = false;
  try {
    order({});
    kernel_.join();
  } catch (const Error& error) {
    std::fprintf(stderr, "ending the resident copy kernel: %s\n", error.what());
  }
}

}  // namespace

std::unique_ptr<Copier> make_copier(const CopierOptions& options) {
  if (options.payload == MemoryKind::host) return std::make_unique<CpuCopier>();
  if (options.engine == CopyEngine::kernel && !options.pageable)
    return std::make_unique<KernelCopier>(options.gpu, options.towards);
  if (options.engine == CopyEngine::gdrcopy) return std::make_unique<GdrCopier>(options);
  return std::make_unique<StreamCopier>(options);
}

std::uint64_t max_bytes(CopyEngine engine) {
  if (engine == CopyEngine::kernel) return cuda::ResidentCopy::max_bytes;
  return std::numeric_limits<std::uint64_t>::max();
}

}  // namespace gdrbench::memory
