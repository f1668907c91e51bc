#include <cstdio>
#include <cstring>
#include <deque>
#include <vector>

#include "cuda/stream.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/memory.hpp"

namespace gdrbench {

/// The copies in flight, each with the event that follows it.
struct Copier::Stream {
  Stream(int gpu_, bool pageable_) : gpu(gpu_), pageable(pageable_), stream(gpu_) {
    // Made here so that the measured loop makes none, unless more copies than this are in flight.
    constexpr int usual_depth = 64;
    for (int i = 0; i < usual_depth; ++i) spare.emplace_back(gpu);
  }

  /// The memory may go as soon as the copier is gone.
  ~Stream() {
    try {
      stream.wait();
    } catch (const Error& error) {
      std::fprintf(stderr, "ending a copier: %s\n", error.what());
    }
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void copy(std::byte* destination, const std::byte* source, std::uint64_t length, Towards towards) {
    stream.copy(destination, source, length,
                towards == Towards::gpu ? cuda::CopyKind::host_to_gpu : cuda::CopyKind::gpu_to_host);
    if (pageable) {
      stream.wait();
      ++finished;
      return;
    }
    if (spare.empty()) spare.emplace_back(gpu);
    stream.record(spare.back());
    in_flight.push_back(std::move(spare.back()));
    spare.pop_back();
  }

  void poll() {
    while (!in_flight.empty() && in_flight.front().done()) {
      spare.push_back(std::move(in_flight.front()));
      in_flight.pop_front();
      ++finished;
    }
  }

  int gpu;
  bool pageable;
  cuda::Stream stream;
  std::vector<cuda::Event> spare;
  std::deque<cuda::Event> in_flight;
  std::uint64_t finished = 0;
};

Copier::Copier(MemoryKind kind, int gpu, bool pageable)
    : stream_(kind == MemoryKind::host ? nullptr : std::make_unique<Stream>(gpu, pageable)) {}
Copier::~Copier() = default;
Copier::Copier(Copier&&) noexcept = default;
Copier& Copier::operator=(Copier&&) noexcept = default;

void Copier::submit(std::byte* destination, const std::byte* source, std::uint64_t length, Towards towards) {
  if (stream_)
    stream_->copy(destination, source, length, towards);
  else
    std::memcpy(destination, source, length);
  ++submitted_;
}

std::uint64_t Copier::finished() {
  if (!stream_) return submitted_;
  stream_->poll();
  return stream_->finished;
}

}  // namespace gdrbench
