#include "link/ring.hpp"

#include <algorithm>

namespace gdrbench::softverbs {
namespace {

static_assert((ring_bytes & (ring_bytes - 1)) == 0);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
                  std::atomic<std::uint32_t>::is_always_lock_free,
              "a lock of one process means nothing in another");

RingSpans spans_at(RingMemory& memory, std::uint64_t position, std::size_t bytes) {
  const std::size_t begin = position % ring_bytes;
  const std::size_t before_end = std::min(bytes, ring_bytes - begin);
  return {{memory.data + begin, before_end}, {memory.data, bytes - before_end}};
}

}  // namespace

// Who sleeps first says so and then looks once more; who has something new shows it and then looks whether
// the other sleeps. Each pair is sequentially consistent, so that at least one of the two sees the other
// (Dekker).

std::size_t RingProducer::room() {
  if (corrupt_) return 0;
  const std::uint64_t consumed = memory_->consumed.load(std::memory_order_acquire);
  // Also refuses a position that went back: the difference is huge then.
  if (consumed - consumed_ > published_ - consumed_) {
    corrupt_ = true;
    return 0;
  }
  consumed_ = consumed;
  return ring_bytes - (reserved_ - consumed_);
}

bool RingProducer::fits(std::size_t bytes) {
  if (corrupt_) return false;
  if (bytes <= ring_bytes - (reserved_ - consumed_) || bytes <= room()) return true;
  memory_->producer_waits.store(1, std::memory_order_seq_cst);
  if (memory_->consumed.load(std::memory_order_seq_cst) == consumed_ || bytes > room()) return false;
  memory_->producer_waits.store(0, std::memory_order_relaxed);
  return true;
}

RingSpans RingProducer::reserve(std::size_t bytes) {
  const RingSpans spans = spans_at(*memory_, reserved_, bytes);
  reserved_ += bytes;
  return spans;
}

bool RingProducer::publish() {
  if (published_ == reserved_) return false;
  published_ = reserved_;
  memory_->produced.store(published_, std::memory_order_seq_cst);
  return memory_->consumer_waits.load(std::memory_order_seq_cst) != 0 &&
         memory_->consumer_waits.exchange(0, std::memory_order_relaxed) != 0;
}

std::size_t RingConsumer::available(std::size_t wanted) {
  const std::size_t known = produced_ - consumed_;
  if (known >= wanted || corrupt_) return known;
  const std::uint64_t produced = memory_->produced.load(std::memory_order_seq_cst);
  // Also refuses a position that went back: the difference is huge then.
  if (produced - produced_ > ring_bytes - (produced_ - released_)) {
    corrupt_ = true;
    return known;
  }
  produced_ = produced;
  return produced_ - consumed_;
}

RingSpans RingConsumer::peek(std::size_t offset, std::size_t bytes) {
  return spans_at(*memory_, consumed_ + offset, bytes);
}

void RingConsumer::consume(std::size_t bytes) {
  consumed_ += bytes;
}

bool RingConsumer::release() {
  if (released_ == consumed_) return false;
  released_ = consumed_;
  memory_->consumed.store(released_, std::memory_order_seq_cst);
  return memory_->producer_waits.load(std::memory_order_seq_cst) != 0 &&
         memory_->producer_waits.exchange(0, std::memory_order_relaxed) != 0;
}

bool RingConsumer::arm(std::size_t known) {
  memory_->consumer_waits.store(1, std::memory_order_seq_cst);
  if (available() <= known) return false;
  disarm();
  return true;
}

void RingConsumer::disarm() {
  memory_->consumer_waits.store(0, std::memory_order_relaxed);
}

}  // namespace gdrbench::softverbs
