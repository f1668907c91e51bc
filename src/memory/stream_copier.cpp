#include "memory/stream_copier.hpp"

#include <algorithm>
#include <cstdio>

#include "gdrbench/error.hpp"

namespace gdrbench::memory {

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
    spare_.push_back(std::move(in_flight_.front()));
    in_flight_.pop_front();
    ++finished_;
  }
  return finished_;
}

}  // namespace gdrbench::memory
