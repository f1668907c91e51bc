#pragma once

#include <cstdint>
#include <memory>

#include "link/descriptor.hpp"
#include "link/ring.hpp"

namespace gdrbench::softverbs {

/// The memory of two rings: shared with the peer, or our own with a socket between them.
class RingPair {
 public:
  /// Rings that the peer may map: of the dialing end, which works as well when the peer does not. The cookie
  /// is left in them, so that the peer knows them. Without a descriptor where the system gives no memfd.
  /// Throws std::bad_alloc.
  static std::unique_ptr<RingPair> offer(std::uint64_t cookie);
  /// Rings that a peer offers. Null unless the descriptor is a memfd of the right size, sealed so that it
  /// cannot shrink under us, with that cookie.
  static std::unique_ptr<RingPair> map(const Descriptor& offered, std::uint64_t cookie);
  /// Rings of our own. Throws std::bad_alloc.
  static std::unique_ptr<RingPair> make_private();

  ~RingPair();
  RingPair(const RingPair&) = delete;

  /// Number of the memfd that is offered; −1: none.
  int descriptor() const { return descriptor_.get(); }
  /// Once the peer has mapped them, or will not.
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
