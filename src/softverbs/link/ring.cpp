#include "link/ring.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <new>

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

struct RingPair::Memory {
  RingMemory of_dialing, of_accepting;  ///< named for the end that writes
  std::uint64_t cookie;
};

namespace {

// Pages of a file that shrinks raise SIGBUS in whoever has mapped them.
constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

void* map_memory(std::size_t bytes, const Descriptor& file) {
  const int flags = file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  void* const place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file.get(), 0);
  return place == MAP_FAILED ? nullptr : place;
}

Descriptor sealed_file(std::size_t bytes) {
  Descriptor file(memfd_create("gdrbench-softverbs-rings", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ftruncate(file.get(), off_t(bytes)) != 0 || fcntl(file.get(), F_ADD_SEALS, seals) != 0) {
    return {};
  }
  return file;
}

}  // namespace

std::unique_ptr<RingPair> RingPair::offer(std::uint64_t cookie) {
  Descriptor file = sealed_file(sizeof(Memory));
  void* const place = map_memory(sizeof(Memory), file);
  if (place == nullptr) throw std::bad_alloc();
  auto* const memory = new (place) Memory;
  memory->cookie = cookie;
  return std::unique_ptr<RingPair>(new RingPair(memory, true, std::move(file)));
}

std::unique_ptr<RingPair> RingPair::map(const Descriptor& offered, std::uint64_t cookie) {
  struct stat status {};
  if (!offered || fstat(offered.get(), &status) != 0 || status.st_size != off_t(sizeof(Memory)))
    return nullptr;
  const int found = fcntl(offered.get(), F_GET_SEALS);
  if (found < 0 || (found & seals) != seals) return nullptr;
  void* const place = map_memory(sizeof(Memory), offered);
  if (place == nullptr) return nullptr;
  auto* const memory = static_cast<Memory*>(place);
  std::unique_ptr<RingPair> pair(new RingPair(memory, false, {}));
  return memory->cookie == cookie ? std::move(pair) : nullptr;
}

std::unique_ptr<RingPair> RingPair::make_private() {
  void* const place = map_memory(sizeof(Memory), {});
  if (place == nullptr) throw std::bad_alloc();
  return std::unique_ptr<RingPair>(new RingPair(new (place) Memory, false, {}));
}

RingPair::~RingPair() {
  munmap(memory_, sizeof(Memory));
}

RingMemory& RingPair::outgoing() {
  return dialing_ ? memory_->of_dialing : memory_->of_accepting;
}
RingMemory& RingPair::incoming() {
  return dialing_ ? memory_->of_accepting : memory_->of_dialing;
}

}  // namespace gdrbench::softverbs
