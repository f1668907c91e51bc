#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "link/handshake.hpp"

namespace gdrbench::softverbs {

class QueuePair;
struct StepResult;

/// The queue pairs of the process by number. A queue pair that is visited is not destroyed meanwhile.
/// Thread-safe.
class QueuePairTable {
 public:
  explicit QueuePairTable(std::uint32_t slot);

  /// Gives it the next free number, which has the process's slot in it. Throws std::system_error (ENOMEM).
  std::uint32_t insert(QueuePair& queue_pair);
  /// Waits until nobody visits it.
  void remove(QueuePair& queue_pair);

  /// False: there is none of this number.
  template <class Visitor>
  bool visit(std::uint32_t qpn, Visitor visitor) {
    const std::shared_lock guard(lock_);
    QueuePair* const found = slot_of(qpn) == slot_ ? by_index_[qpn & index_mask] : nullptr;
    if (found != nullptr) visitor(*found);
    return found != nullptr;
  }
  template <class Visitor>
  void visit_all(Visitor visitor) {
    const std::shared_lock guard(lock_);
    for (QueuePair* const queue_pair : all_) visitor(*queue_pair);
  }

 private:
  static constexpr std::uint32_t index_mask = (1U << queue_pair_index_bits) - 1;

  std::shared_mutex lock_;
  std::uint32_t slot_;
  std::uint32_t next_index_;
  std::vector<QueuePair*> by_index_;
  std::vector<QueuePair*> all_;
};

}  // namespace gdrbench::softverbs
