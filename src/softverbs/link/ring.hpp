#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "link/stream_socket.hpp"

namespace gdrbench::softverbs {

/// Bytes of a ring's data area; a power of two that holds several of the largest frames.
constexpr std::size_t ring_bytes = std::size_t{1} << 20;

/// The part of a ring that two processes may share. Both sides distrust it: positions are checked before use.
struct RingMemory {
  alignas(64) std::atomic<std::uint64_t> produced;        ///< bytes written, ever
  alignas(64) std::atomic<std::uint64_t> consumed;        ///< bytes taken, ever
  alignas(64) std::atomic<std::uint32_t> consumer_waits;  ///< the consumer sleeps: ring its doorbell
  alignas(64) std::atomic<std::uint32_t> producer_waits;  ///< the producer found no room: ring its doorbell
  alignas(64) std::byte data[ring_bytes];
};

/// A piece of the ring: two parts where it wraps around the end.
struct RingSpans {
  std::span<std::byte> first, second;

  /// Fills both from memory of our own.
  void fill(const std::byte* from) const {
    // Of an empty message nothing is there, not even an address, which memcpy would want.
    if (!first.empty()) std::memcpy(first.data(), from, first.size());
    if (!second.empty()) std::memcpy(second.data(), from + first.size(), second.size());
  }
  std::byte& operator[](std::size_t place) const {
    return place < first.size() ? first[place] : second[place - first.size()];
  }
};

/// The end that writes. Not thread-safe.
class RingProducer {
 public:
  explicit RingProducer(RingMemory& memory) : memory_(&memory) {}

  /// Whether `bytes` fit now; when not, asks the consumer to ring once it has taken some.
  bool fits(std::size_t bytes);
  /// Bytes that fit now; asks for nothing.
  std::size_t room();
  /// Place for the next `bytes` (which fit), not yet visible to the consumer.
  RingSpans reserve(std::size_t bytes);
  /// Takes back the last `bytes` reserved, which are not published.
  void retract(std::size_t bytes) { reserved_ -= bytes; }
  /// Makes all that was reserved visible. True: the consumer sleeps and has to be rung.
  [[nodiscard]] bool publish();
  /// The consumer's position is impossible: the remote is broken.
  bool corrupt() const { return corrupt_; }

 private:
  RingMemory* memory_;
  std::uint64_t reserved_ = 0;  ///< our own truth; memory_->produced only tells the other side
  std::uint64_t published_ = 0;
  std::uint64_t consumed_ = 0;  ///< the consumer's position when last looked at
  bool corrupt_ = false;
};

/// The end that reads. Not thread-safe.
class RingConsumer {
 public:
  explicit RingConsumer(RingMemory& memory) : memory_(&memory) {}

  /// Bytes that can be read now. The shared position is looked at only when fewer than `wanted` are known of.
  std::size_t available(std::size_t wanted = ring_bytes);
  /// The next `bytes` (which are available); they stay until `consume`.
  RingSpans peek(std::size_t offset, std::size_t bytes);
  void consume(std::size_t bytes);
  /// Hands the room of what was consumed back. True: the producer waits for it and has to be rung.
  [[nodiscard]] bool release();
  /// Asks to be rung for more. True: something came meanwhile, do not sleep.
  [[nodiscard]] bool arm(std::size_t known = 0);
  void disarm();
  bool corrupt() const { return corrupt_; }

 private:
  RingMemory* memory_;
  std::uint64_t consumed_ = 0, released_ = 0;
  std::uint64_t produced_ = 0;  ///< the producer's position when last looked at
  bool corrupt_ = false;
};

/// The memory of two rings: shared with the remote, or our own with a socket between them.
class RingPair {
 public:
  /// Rings that the remote may map: of the dialing end, which works as well when the remote does not. The
  /// cookie is left in them, so that the remote knows them. Without a descriptor where the system gives no
  /// memfd. Throws std::bad_alloc.
  static std::unique_ptr<RingPair> offer(std::uint64_t cookie);
  /// Rings that a remote offers. Null unless the descriptor is a memfd of the right size, sealed so that it
  /// cannot shrink under us, with that cookie.
  static std::unique_ptr<RingPair> map(const Descriptor& offered, std::uint64_t cookie);
  /// Rings of our own. Throws std::bad_alloc.
  static std::unique_ptr<RingPair> make_private();

  ~RingPair();
  RingPair(const RingPair&) = delete;

  /// Number of the memfd that is offered; −1: none.
  int descriptor() const { return descriptor_.get(); }
  /// Once the remote has mapped them, or will not.
  void close_descriptor() { descriptor_ = Descriptor(); }

  RingMemory& outgoing();
  RingMemory& incoming();

 private:
  struct Memory;
  RingPair(Memory* memory, bool dialing, Descriptor descriptor)
      : memory_(memory), dialing_(dialing), descriptor_(std::move(descriptor)) {}

  Memory* memory_;
  bool dialing_;
  Descriptor descriptor_;
};

}  // namespace gdrbench::softverbs
