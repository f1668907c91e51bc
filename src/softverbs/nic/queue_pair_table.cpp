#include "nic/queue_pair_table.hpp"

#include <algorithm>
#include <cerrno>
#include <random>
#include <system_error>

#include "nic/limits.hpp"
#include "nic/queue_pair.hpp"

namespace gdrbench::softverbs {

// Numbers start anywhere, so that a process that takes a dead one's port is not taken for it.
QueuePairTable::QueuePairTable(std::uint32_t slot)
    : slot_(slot), next_index_(std::random_device{}() & index_mask), by_index_(index_mask + 1) {}

std::uint32_t QueuePairTable::insert(QueuePair& queue_pair) {
  const std::unique_lock guard(lock_);
  if (all_.size() >= static_cast<std::size_t>(max_queue_pairs))
    throw std::system_error(ENOMEM, std::generic_category(), "no queue-pair number is left");
  do {
    next_index_ = (next_index_ + 1) & index_mask;
    // Numbers 0 and 1 are for management.
  } while (next_index_ < 2 || by_index_[next_index_] != nullptr);
  by_index_[next_index_] = &queue_pair;
  all_.push_back(&queue_pair);
  return slot_ << queue_pair_index_bits | next_index_;
}

void QueuePairTable::remove(QueuePair& queue_pair) {
  const std::unique_lock guard(lock_);
  by_index_[queue_pair.qp_base.qp_num & index_mask] = nullptr;
  all_.erase(std::find(all_.begin(), all_.end(), &queue_pair));
}

}  // namespace gdrbench::softverbs
