#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "handles.hpp"
#include "nic.hpp"
#include "work.hpp"

/// Queue pairs with what they need around them, and how they are connected.
namespace gdrbench::conformance {

inline constexpr int all_access =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

/// Seeds of what lies at either end, before anything is sent.
inline constexpr unsigned ours = 1, theirs = 2;

/// Bytes that depend on their position and on `seed`.
std::vector<std::byte> pattern(std::size_t size, unsigned seed);

/// Registered memory.
class Memory {
 public:
  Memory(ibv_pd* pd, std::size_t size_bytes, int access = all_access);

  ibv_sge sge(std::size_t offset, std::size_t length) const;
  Remote remote(std::size_t offset = 0) const;
  std::span<std::byte> bytes(std::size_t offset, std::size_t length) {
    return std::span(bytes_).subspan(offset, length);
  }
  std::size_t size() const { return bytes_.size(); }
  void fill(std::size_t offset, std::size_t length, unsigned seed);
  /// Whether the bytes from `offset` on are pattern(length, seed).
  bool holds(std::size_t offset, std::size_t length, unsigned seed) const;
  /// Whether nothing but `fill(0, size(), seed)` wrote here; in the second one, from `offset` on.
  bool is_untouched(unsigned seed) const { return holds(0, size(), seed); }
  bool is_untouched(unsigned seed, std::size_t offset) const;
  /// The native 64-bit word at `offset`.
  std::uint64_t word(std::size_t offset) const;
  void set_word(std::size_t offset, std::uint64_t value);

  std::uint32_t lkey() const { return region_->lkey; }
  void deregister() { region_.reset(); }

 private:
  std::vector<std::byte> bytes_;
  MemoryRegion region_;
};

struct EndOptions {
  ibv_qp_type type = IBV_QPT_RC;
  std::uint32_t send_slots = 64;
  std::uint32_t receive_slots = 64;
  std::uint32_t list_length = 2;  ///< max_send_sge and max_recv_sge
  std::uint32_t inline_bytes = 0;
  bool signal_all = false;
  int access = all_access;         ///< of the queue pair
  int region_access = all_access;  ///< of the memory
  std::size_t memory_bytes = 1 << 16;
  int completions = 256;  ///< entries of the completion queue
  ibv_comp_channel* channel = nullptr;
  ibv_srq* shared_receives = nullptr;
  std::uint64_t send_ops = 0;  ///< not 0: made by ibv_create_qp_ex for these IBV_QP_EX_WITH_…
};

/// For RC queue pairs of a few requests of one element.
ibv_qp_init_attr small_queue_pair(ibv_cq* send_cq, ibv_cq* recv_cq);

/// A queue pair in RESET with a completion queue and memory of its own.
struct End {
  explicit End(const Nic& nic, const EndOptions& options = {});

  std::uint32_t number() const { return qp->qp_num; }
  ibv_qp_state state() const;

  const Nic& nic;
  EndOptions options;
  Memory memory;
  CompletionQueue cq;
  QueuePair qp;
};

/// How two ends are connected.
struct Link {
  std::uint32_t psn = 0xfffff8;  ///< of the sender's first packet; soon wraps at 24 bits
  std::uint32_t remote_psn = 0x123;
  std::uint8_t timeout = 17;  ///< 4.096 µs << 17: 0.5 s
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry = 7;      ///< 7: without end
  std::uint8_t min_rnr_timer = 1;  ///< 0.01 ms
  std::uint8_t outstanding = 4;    ///< READs and atomics in flight
};

struct Transition {
  ibv_qp_attr attr{};
  int mask = 0;
};
Transition to_init(const End& end);
Transition to_rtr(const End& end, std::uint32_t remote, const Link& link = {});
Transition to_rts(const Link& link = {});  ///< RC
Transition to_rts(const End& end, const Link& link = {});
/// Without attributes: RESET, ERR, SQD.
Transition to_state(ibv_qp_state state);
/// Returns an errno value.
int modify(const End& end, Transition transition);

/// RESET to RTS towards the queue pair `remote` of the same port. Throws std::system_error.
void connect(const End& end, std::uint32_t remote, const Link& link = {});
/// Both ends, each towards the other.
void connect(const End& left, const End& right, const Link& link = {});

struct Ends {
  EndOptions left{}, right{};
};

/// Two connected ends.
struct Pair {
  explicit Pair(const Nic& nic, const EndOptions& options = {}) : Pair(nic, Ends{options, options}) {}
  Pair(const Nic& nic, const Link& link) : Pair(nic, Ends{}, link) {}
  Pair(const Nic& nic, const Ends& ends, const Link& link = {})
      : left(nic, ends.left), right(nic, ends.right) {
    connect(left, right, link);
  }
  End left, right;
};

}  // namespace gdrbench::conformance
