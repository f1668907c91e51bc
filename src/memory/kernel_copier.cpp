#include "memory/kernel_copier.hpp"

#include <atomic>
#include <cstdio>
#include <cstring>

#include "cuda/flagged_words.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::memory {
namespace {

cuda::CopyKind kind_of(Towards towards) {
  return towards == Towards::gpu ? cuda::CopyKind::host_to_gpu : cuda::CopyKind::gpu_to_host;
}

}  // namespace

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

}  // namespace gdrbench::memory
