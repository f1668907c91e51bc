#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nic/gid_table.hpp"
#include "nic/region_table.hpp"

namespace gdrbench::softverbs {

class Datagrams;
class Engine;
class QueuePairTable;

/// What the process has one of while it has the device open: memory keys, queue-pair numbers, the thread that
/// works when the program does not, the port that peers connect to.
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
