#pragma once

#include <infiniband/verbs.h>
#include <netinet/in.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "link/link.hpp"
#include "link/locality.hpp"

/// The first words on a connection, as they lie on the socket: the dialing end's Hello, then the other's
/// Reply.
namespace gdrbench::softverbs {

enum class LinkKind : std::uint32_t { reliable = 1, datagrams = 2, unreliable = 3 };

constexpr std::array<char, 8> hello_magic = {'g', 'd', 'r', 's', 'v', 'r', 'b', 's'};
constexpr std::uint32_t hello_version = 1;
constexpr std::uint32_t hello_byte_order = 0x01020304;

struct Hello {
  std::array<char, 8> magic = hello_magic;
  std::uint32_t version = hello_version;
  std::uint32_t byte_order = hello_byte_order;
  LinkKind kind = LinkKind::reliable;
  std::uint32_t source_qpn = 0;  ///< 0 for datagrams, as are the next two
  std::uint32_t destination_qpn = 0;
  std::uint32_t psn = 0;  ///< sq_psn of the source, which the destination expects as its rq_psn
  ibv_gid source_gid{};
  ibv_gid destination_gid{};
  Locality locality;
};

enum class Refusal : std::uint32_t {
  none = 0,
  malformed,      ///< no Hello of this version and byte order
  no_queue_pair,  ///< the destination QPN is not in use there
  not_expected,   ///< that queue pair expects another GID, QPN or PSN, or is connected already
  not_ready,      ///< it did not become ready to receive in time
  busy            ///< too many connections wait there
};

struct Reply {
  std::array<char, 8> magic = hello_magic;
  Refusal refusal = Refusal::none;
  std::uint32_t shares_rings = 0;  ///< 1: the rings of the Hello are mapped; 0: frames go over the socket
  std::uint32_t can_pull = 0;      ///< 1: the accepting end can read the dialing end's memory
  std::uint32_t pad = 0;
  Locality locality;
};

const char* to_string(Refusal refusal);

/// Whether it is a Hello that this version understands; everything in it is checked that can be checked
/// alone.
bool well_formed(const Hello& hello);

/// The same for the answer.
bool well_formed(const Reply& reply);

/// GDRBENCH_SOFTVERBS_TRANSPORT: `auto` (the default) shares memory where both ends can, `tcp` never does.
/// Throws std::invalid_argument naming another value.
bool shared_memory_allowed();

/// A port of the range that queue-pair numbers are made of: the QPN's upper bits name the port that its
/// process listens on, so a remote that knows GID and QPN knows where to connect, and the port number is
/// claimed once a host (a network namespace) without any daemon. QPN = slot × 4096 + index.
constexpr std::uint32_t queue_pair_index_bits = 12;
constexpr std::uint32_t slots = 1U << 12;
constexpr std::uint16_t default_first_port = 20480;  ///< …24575: below the ephemeral ports of Linux

/// GDRBENCH_SOFTVERBS_PORT, else the default; the same on both ends. Throws std::invalid_argument naming the
/// value.
std::uint16_t first_port();

constexpr std::uint32_t slot_of(std::uint32_t qpn) {
  return qpn >> queue_pair_index_bits;
}

/// Address of the process of a queue pair. `scope_id` is for link-local addresses.
sockaddr_in6 address_of(const ibv_gid& gid, std::uint32_t slot, std::uint32_t scope_id);

/// A listening socket on the first free port of the range.
struct ListeningSlot {
  Descriptor socket;
  std::uint32_t slot = 0;
};
/// Throws std::system_error when the whole range is taken.
ListeningSlot claim_slot();

/// A remote that asks to be connected and waits for the answer.
class ConnectionRequest {
 public:
  ConnectionRequest(EventLoop& loop, Descriptor socket, const Hello& hello)
      : loop_(&loop), socket_(std::move(socket)), hello_(hello) {}
  ConnectionRequest(ConnectionRequest&&) noexcept = default;
  ConnectionRequest& operator=(ConnectionRequest&&) noexcept = default;
  /// Unanswered: the remote sees the connection close.
  ~ConnectionRequest() = default;

  const Hello& hello() const { return hello_; }
  /// The established link; null when the caller has hung up or a descriptor is lacking.
  std::unique_ptr<Link> accept();
  void refuse(Refusal reason);

 private:
  EventLoop* loop_;
  Descriptor socket_;
  Hello hello_;
};

/// Accepts connections on the loop's thread, reads their Hello (within 5 s; at most 256 at a time) and passes
/// on those that are well formed; refuses and closes the others.
class Listener {
 public:
  Listener(EventLoop& loop, Descriptor socket, std::function<void(ConnectionRequest)> on_connection_request);
  ~Listener();
  /// Ends what has waited too long; call now and then on the loop's thread.
  void expire(Clock::time_point now);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct DialResult {
  std::unique_ptr<Link> link;       ///< null: see the rest
  Refusal refusal = Refusal::none;  ///< the remote's answer
  std::string error;                ///< a socket error, in words with its name
};

/// Connects to other processes on the loop's thread.
class Dialer {
 public:
  using Done = std::function<void(DialResult)>;
  /// Throws std::system_error.
  explicit Dialer(EventLoop& loop);
  /// What is under way is given up; nothing is told any more.
  ~Dialer();

  /// From any thread. `done` runs on the loop's thread, once, at the latest at `deadline`. `source` is the
  /// address to connect from (port ignored). Locality and rings of `hello` are filled in here.
  void dial(const Hello& hello, const sockaddr_in6& source, const sockaddr_in6& destination,
            Clock::time_point deadline, Done done);
  void expire(Clock::time_point now);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gdrbench::softverbs
