#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "gdrbench/case.hpp"
#include "measure/runner.hpp"

namespace gdrbench::session {

/// Half of the memory that the kernel could give to programs now (MemAvailable), bytes; the default limit.
std::uint64_t half_of_available_memory();

/// What the open cases of one client may take of the server, over all its sessions, and what they have taken:
/// memory and queue pairs.
struct Limits {
  struct Counters {
    std::uint64_t payload_bytes = 0;
    std::uint64_t bounce_bytes = 0;
    std::uint32_t queue_pairs = 0;
    std::uint64_t bytes() const { return payload_bytes + bounce_bytes; }
  };
  Limits(std::uint64_t bytes, std::uint32_t queue_pairs) : max_bytes(bytes), max_queue_pairs(queue_pairs) {}

  const std::uint64_t max_bytes;  ///< of payload and bounce memory together
  const std::uint32_t max_queue_pairs;
  std::recursive_mutex mutex;  ///< of what follows; buffers may be let go while others are reserved
  Counters used;
};

/// What the open cases of one session take. The bounce memory of a staged case is its own. The payload is
/// shared, since the cases of a session run one after another: a case that fits into the present buffers
/// costs nothing more, one that makes them grow (or needs another kind of memory) costs new ones, and buffers
/// stay for as long as a case uses them.
class Budget {
 public:
  explicit Budget(std::shared_ptr<Limits> limits) : limits_(std::move(limits)) {}

  /// Gives back what it stands for when destroyed.
  class Hold;
  /// Throws Unavailable with the limit, what was asked for, and the flag of `gdrbench serve` that raises it.
  /// `remotes`: the ranks with each of which this one has the queue pairs of the case.
  std::unique_ptr<Hold> reserve(const Case& c, std::uint64_t payload_bytes, std::uint64_t bounce_bytes = 0,
                                std::uint32_t remotes = 1);
  /// Once a runner has taken its share of payload(): counts what is really there, if that is more. Throws as
  /// above.
  void settle();

  measure::Payload& payload() { return payload_; }
  Limits::Counters used() const;

 private:
  struct Buffers;

  bool has_room(std::uint64_t payload_bytes, std::uint64_t bounce_bytes) const;

  std::shared_ptr<Limits> limits_;
  std::shared_ptr<Buffers> present_;
  measure::Payload payload_;
};

class Budget::Hold {
 public:
  Hold(std::shared_ptr<Limits> limits, std::shared_ptr<Buffers> buffers, std::uint64_t bounce_bytes,
       std::uint32_t queue_pairs);
  ~Hold();
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  std::shared_ptr<Limits> limits_;
  std::shared_ptr<Buffers> buffers_;
  std::uint64_t bounce_bytes_;
  std::uint32_t queue_pairs_;
};

}  // namespace gdrbench::session
