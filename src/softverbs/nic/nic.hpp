#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "link/handshake.hpp"
#include "nic/device.hpp"
#include "nic/region_table.hpp"

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

class Datagrams;
class Engine;
class QueuePairTable;

/// What the process has one of while it has the device open: memory keys, queue-pair numbers, the thread that
/// works when the program does not, the port that remotes connect to.
class Nic : public std::enable_shared_from_this<Nic> {
 public:
  /// The process's NIC; made for the first that asks, and ended with the last that holds it. Throws
  /// std::system_error or std::invalid_argument (a bad environment variable).
  static std::shared_ptr<Nic> acquire();
  ~Nic();
  Nic(const Nic&) = delete;

  const std::vector<GidEntry>& gids() const { return gids_; }
  RegionTable& regions() { return regions_; }
  QueuePairTable& queue_pairs() { return *queue_pairs_; }
  Engine& engine() { return *engine_; }
  Datagrams& datagrams() { return *datagrams_; }

  /// There is work that no polling thread may be about to do: a receive was posted that a message waits for.
  void wake();
  /// A program is about to sleep (it asked for a notification): nobody polls any more. Cheap.
  void take_over();

 private:
  Nic();

  std::vector<GidEntry> gids_;
  RegionTable regions_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<QueuePairTable> queue_pairs_;
  std::unique_ptr<Datagrams> datagrams_;
};

}  // namespace gdrbench::softverbs
