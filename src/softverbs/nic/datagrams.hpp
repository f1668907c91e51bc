#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "link/frame.hpp"
#include "link/handshake.hpp"
#include "link/ring.hpp"

namespace gdrbench::softverbs {

class Nic;
class QueuePair;
struct StepResult;

/// The connections that carry datagrams, one for each pair of addresses and direction, shared by the UD queue
/// pairs of the process. Thread-safe. Locks: `add` may be called under the lock of a queue pair, `receive`
/// takes it.
class Datagrams {
 public:
  explicit Datagrams(Nic& of_nic);
  ~Datagrams();

  enum class Outcome {
    sent,
    wait,  ///< the connection is being made, or has no room: try again when the engine next moves
    lost   ///< nobody is there: the datagram is dropped, as a network would
  };
  /// Sends one datagram of header.payload_bytes, which `fill(RingSpans)` puts in its place.
  template <class Fill>
  Outcome add(std::uint8_t gid_index, const ibv_gid& to, const FrameHeader& header, Fill fill) {
    const std::lock_guard guard(out_lock_);
    Link* const link = link_to(gid_index, to, slot_of(header.queue_pair));
    if (link == nullptr) return unreachable_ ? Outcome::lost : Outcome::wait;
    if (!link->fits(header.payload_bytes)) return Outcome::wait;
    fill(link->add(header));
    link->flush();
    return Outcome::sent;
  }

  /// Hands what came to the queue pairs; the number of frames.
  std::size_t receive();
  bool arm();
  void disarm();
  void on_connection_request(ConnectionRequest request);

 private:
  struct Destination {
    std::unique_ptr<Link> link;
    bool dialing = false;
    Clock::time_point not_before{};  ///< after a failure, when to try again
  };
  using Key = std::tuple<std::uint8_t, std::array<std::uint8_t, 16>, std::uint32_t>;
  struct Origin {
    std::unique_ptr<Link> link;
    ibv_gid source, destination;
  };
  Link* link_to(std::uint8_t gid_index, const ibv_gid& to, std::uint32_t slot);
  std::size_t receive_from(Origin& origin);

  Nic& nic_;
  std::mutex out_lock_;
  std::map<Key, Destination> destinations_;
  bool unreachable_ = false;  ///< by the last call of link_to
  std::mutex in_lock_;
  std::vector<Origin> origins_;
};

/// Sends what a UD queue pair has to send. Under its lock.
void send_datagrams(QueuePair& queue_pair, StepResult& result);

/// Puts a datagram, behind its 40-byte GRH, into the next receive; dropped where there is none, or the Q_Key
/// is another. Under the lock.
void receive_datagram(QueuePair& queue_pair, const FrameHeader& header, const RingSpans& payload,
                      const ibv_gid& source, const ibv_gid& destination);

}  // namespace gdrbench::softverbs
