#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>

/// The first words on a connection, as they lie on the socket: the dialing end's Hello, then the other's
/// Reply.
namespace gdrbench::softverbs {

enum class LinkKind : std::uint32_t { reliable = 1, datagrams = 2, unreliable = 3 };

constexpr std::array<char, 8> hello_magic = {'g', 'd', 'r', 's', 'v', 'r', 'b', 's'};
constexpr std::uint32_t hello_version = 1;
constexpr std::uint32_t hello_byte_order = 0x01020304;

/// Where a process runs and how to reach into it; of use only where `boot_id` and `pid_namespace` are ours.
struct Locality {
  std::array<char, 40> boot_id{};   ///< /proc/sys/kernel/random/boot_id
  std::uint64_t pid_namespace = 0;  ///< inode of /proc/self/ns/pid
  std::int32_t pid = 0;
  std::int32_t doorbell = -1;  ///< descriptor number there
  std::int32_t rings = -1;     ///< descriptor number there of a sealed memfd with two RingMemory; −1: none
  std::int32_t pad = 0;
  std::uint64_t cookie_address = 0;  ///< where in that process `cookie` lies
  std::uint64_t cookie = 0;          ///< random; proves that it is the right process
};

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

}  // namespace gdrbench::softverbs
