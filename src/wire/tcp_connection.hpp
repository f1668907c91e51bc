#pragma once

#include <sys/uio.h>

#include <array>
#include <atomic>
#include <span>
#include <vector>

#include "base/ring.hpp"
#include "wire/queue_pair.hpp"

namespace gdrbench::wire {

/// What precedes the payload of every message on the socket. Little-endian, as all supported machines are.
struct FrameHeader {
  enum class Kind : std::uint32_t { send = 1, write, write_imm, read_request, read_response };
  Kind kind = Kind::send;
  std::uint32_t length = 0;     ///< payload bytes that follow; bytes asked for in a read request
  std::uint32_t immediate = 0;  ///< write_imm
  std::uint32_t rkey = 0;       ///< write, write_imm, read_request: the region at the receiver of the frame
  std::uint64_t address = 0;    ///< likewise, as the receiver's virtual address
};
static_assert(sizeof(FrameHeader) == 24);

/// One socket as a queue pair: frames out in order of posting, frames in placed straight into posted receives
/// or registered memory. A message without a posted receive stays in the socket: TCP's own flow control is
/// the RNR. Throws PeerLost when the connection ends and Error when the remote end breaks the protocol or
/// names memory that is not registered; ordinary completions are always successes. One thread may reserve
/// while another does the rest.
class TcpConnection {
 public:
  /// `regions` is the wire's table of registered memory, indexed by rkey.
  TcpConnection(Socket socket, std::uint32_t index, const std::vector<Region>& regions);

  /// Room for one more request among `capacity`; false if there is none. Each post takes one.
  bool reserve_send(std::size_t capacity) { return reserve(sends_, capacity); }
  bool reserve_receive(std::size_t capacity) { return reserve(receives_posted_, capacity); }
  void post_send(const SendRequest& request, Ring<Completion>& completed);
  void post_receive(const ReceiveRequest& request) { receives_.push_back(request); }
  /// Moves what the socket takes and gives, and appends what finished.
  void progress(Ring<Completion>& completed);
  std::uint64_t bytes_moved() const { return bytes_moved_; }
  bool wants_to_write() const { return !outgoing_.empty(); }
  /// False while a frame that was read ahead waits for a receive to be posted.
  bool wants_to_read() const { return buffer_begin_ == buffer_end_; }
  const Socket& socket() const { return socket_; }

 private:
  struct Outgoing {
    FrameHeader header;
    std::uint64_t sent = 0;  ///< bytes of header and payload that the kernel has taken
    SendRequest request;
    bool completes = true;  ///< a read completes with its response, a response completes nothing here
  };
  enum class Place : std::uint8_t { header, payload };

  static bool reserve(std::atomic<std::size_t>& used, std::size_t capacity) {
    if (used.load(std::memory_order_relaxed) >= capacity) return false;
    used.fetch_add(1, std::memory_order_relaxed);
    return true;
  }

  static constexpr std::size_t small_payload = 512;
  static constexpr std::size_t max_queued = 16384;  ///< frames; more than any two ends agree on
  ssize_t send_small(const Outgoing& out) const;
  ssize_t send_rest(Outgoing& out) const;
  ssize_t receive_payload(std::uint64_t wanted);
  void write_out(Ring<Completion>& completed);
  bool write_one(Outgoing& out, Ring<Completion>& completed);
  bool read_in(Ring<Completion>& completed);
  void consume(Ring<Completion>& completed);
  bool begin_frame(Ring<Completion>& completed);
  void end_frame(Ring<Completion>& completed);
  std::byte* resolve(const FrameHeader& header) const;
  std::byte* place_of_write();
  [[noreturn]] void lost(int error, const char* tried) const;

  Socket socket_;
  std::string remote_;  ///< its address, known also when the connection is gone
  std::uint32_t index_;
  const std::vector<Region>* regions_;
  std::uint64_t bytes_moved_ = 0;                 ///< either way
  std::atomic<std::size_t> sends_ = 0;            ///< requests of this end that have not completed
  std::atomic<std::size_t> receives_posted_ = 0;  ///< reserved and not yet completed
  Ring<Outgoing> outgoing_;
  Ring<SendRequest> reads_;  ///< waiting for their response, in order
  Ring<ReceiveRequest> receives_;

  // Incoming: bytes that were read ahead, then the frame being placed.
  std::array<std::byte, 8192> buffer_;
  std::size_t buffer_begin_ = 0, buffer_end_ = 0;
  Place place_ = Place::header;
  FrameHeader incoming_;
  std::byte* destination_ = nullptr;
  std::byte* word_target_ = nullptr;  ///< where word_ goes when it is complete
  alignas(8) std::array<std::byte, 8> word_{};
  std::uint64_t placed_ = 0;
};

/// Sleeps until the sockets of some connections can go on. Best made by the first wait: a socket in an epoll
/// set makes every arrival dearer, for polling too.
class SocketWatch {
 public:
  /// The connections outlive it. Throws SystemError.
  explicit SocketWatch(std::vector<const TcpConnection*> connections);

  /// Until a socket has something to read or room to write, for a connection that wants to; or `extra_fd`
  /// (−1: none) is readable, or `timeout_ms` (−1: never) is over.
  void wait(int extra_fd, int timeout_ms);

 private:
  std::vector<const TcpConnection*> connections_;
  FileDescriptor epoll_;
  std::vector<std::uint32_t> events_;  ///< connection: what epoll watches for
  int extra_fd_ = -1;                  ///< in the epoll set
};

}  // namespace gdrbench::wire
