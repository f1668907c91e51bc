#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "link/event_loop.hpp"
#include "link/frame.hpp"
#include "link/ring.hpp"
#include "link/stream_socket.hpp"

namespace gdrbench::softverbs {

/// Another process of this host.
struct RemoteProcess {
  int pid = 0;
  Descriptor doorbell;    ///< write end; none where it cannot be opened
  bool readable = false;  ///< process_vm_readv works on it
};

/// One established connection: frames out and frames in. Over shared rings where both ends can map them, else
/// over the socket, which otherwise only tells when the remote is gone. Not thread-safe: its owner
/// serialises.
class Link {
 public:
  struct Parts {
    Descriptor socket;
    std::unique_ptr<RingPair> rings;
    RemoteProcess remote;
    bool shares_rings = false;
    bool remote_can_pull = false;  ///< the remote can read our memory; only the dialing end learns that
  };
  /// Throws std::system_error, std::bad_alloc.
  Link(EventLoop& loop, Parts parts);
  ~Link();
  Link(const Link&) = delete;

  // Outgoing.

  /// Whether a frame of so much payload can be sent now; when not, the engine is woken once it can.
  bool fits(std::size_t payload_bytes);
  /// Adds a frame (which fits) and returns the place of its payload, header.payload_bytes long.
  RingSpans add(const FrameHeader& header);
  /// Gives what was added to the remote.
  void flush();
  /// Whether all of it has left: what has not is lost when the link ends.
  bool all_sent();

  // Incoming.

  /// The next frame, complete; null when there is none. A malformed one breaks the link.
  const FrameHeader* next();
  /// Payload of the frame that `next` returned.
  RingSpans payload();
  /// Ends the use of that frame.
  void consume();
  /// Hands the room of consumed frames back to the remote. Call once after a batch.
  void release();

  /// Asks the remote to wake the engine when a frame comes. True: one came meanwhile, do not sleep.
  /// `stalled`: the frames that are there cannot be handled yet and do not count.
  bool arm(bool stalled = false);
  void disarm();

  /// The remote is gone or misbehaves. Frames that came before may still be there: it is over when `next`
  /// then returns null.
  bool broken() const { return broken_ != nullptr; }
  /// Why, in words; empty while it is not.
  const char* why_broken() const { return broken_ == nullptr ? "" : broken_; }
  /// Ends the connection, as does destruction; the remote notices.
  void shut(const char* why);

  /// Whether this end can read the remote's memory, and the remote ours.
  bool can_pull() const { return remote_.readable; }
  bool remote_can_pull() const { return remote_can_pull_; }
  /// Copies `length` bytes from the remote's memory to ours, last bytes last. 0, or an errno value.
  int pull(std::uint64_t remote_address, void* local, std::size_t length) const;

 private:
  void fail(const char* why);
  void refuse_input(const char* why);
  void ring_doorbell();
  bool take_header();
  void watch_socket();
  bool read_socket();
  void write_socket();

  EventLoop& loop_;
  Descriptor socket_;
  std::unique_ptr<RingPair> rings_;
  RemoteProcess remote_;
  bool shares_rings_, remote_can_pull_;
  RingProducer out_;
  RingConsumer in_;
  RingConsumer unsent_;    ///< without shared rings: the other end of `out_`
  RingProducer received_;  ///< the same of `in_`
  std::shared_ptr<std::atomic<bool>> socket_ready_;
  const char* broken_ = nullptr;
  bool input_ended_ = false;    ///< nothing more comes from the socket
  bool input_refused_ = false;  ///< nothing more is read from the ring
  FrameHeader header_{};        ///< a copy: the shared one can change after it was checked
  bool header_valid_ = false;
};

}  // namespace gdrbench::softverbs
