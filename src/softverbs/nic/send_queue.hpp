#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "nic/device.hpp"
#include "nic/faults.hpp"

namespace gdrbench::softverbs {

/// A work request of a send queue, and how far it has come.
struct SendWork {
  std::uint64_t id = 0;
  ibv_wr_opcode opcode = IBV_WR_SEND;
  unsigned flags = 0;  ///< enum ibv_send_flags
  std::uint32_t immediate = 0;
  std::uint64_t remote_address = 0;
  std::uint32_t rkey = 0;
  std::uint64_t compare_add = 0, swap = 0;
  int segments = 0;
  std::array<ibv_sge, max_segments> sg_list;
  std::vector<std::byte> inline_data;  ///< copied when posted (IBV_SEND_INLINE)
  ibv_ah_attr destination;             ///< UD, as are the next two
  std::uint32_t destination_qpn = 0, qkey = 0;

  std::uint64_t length = 0;  ///< bytes of the message
  std::uint64_t moved = 0;   ///< of these sent, or for a read received
  bool begun = false;        ///< its local checks passed and its first frame is due
  bool sent = false;
  bool corrupt = false;  ///< by a fault, one bit of the payload changes on the way
  bool done = false;     ///< completes with `status` when all before it have completed
  ibv_wc_status status = IBV_WC_SUCCESS;
  std::uint32_t vendor_error = 0;
  std::optional<CompletionFault> fault;

  bool is_read_or_atomic() const {
    return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
           opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
  }
  /// The byte that `corrupt` changes: in the middle, since many programs begin a message with a header of
  /// their own, and payload is what they verify.
  std::uint64_t corrupt_byte() const { return length / 2; }
};
/// A high one: of a small counter, it makes a number that cannot be, where a low one may make an old one, for
/// whose successor a program waits.
constexpr std::byte corrupt_bit{0x80};

/// Work requests in the order of posting, in place; some may be staged and not yet posted (ibv_wr_start …
/// ibv_wr_complete). Not thread-safe.
class SendQueue {
 public:
  explicit SendQueue(std::size_t capacity) : ring_(capacity) {}

  /// A fresh request behind the last one; null when the queue is full.
  SendWork* stage() {
    if (used_ + staged_ == ring_.size()) return nullptr;
    SendWork& work = (*this)[used_ + staged_++];
    work.id = 0;
    work.flags = 0;
    work.immediate = 0;
    work.segments = 0;
    work.inline_data.clear();
    work.length = work.moved = 0;
    work.begun = work.sent = work.corrupt = work.done = false;
    work.status = IBV_WC_SUCCESS;
    work.vendor_error = 0;
    work.fault.reset();
    return &work;
  }
  void post_staged() {
    used_ += staged_;
    staged_ = 0;
  }
  void drop_staged(std::size_t count) { staged_ -= count; }
  std::size_t staged() const { return staged_; }

  bool empty() const { return used_ == 0; }
  std::size_t size() const { return used_; }
  std::size_t capacity() const { return ring_.size(); }
  SendWork& operator[](std::size_t place) { return ring_[(first_ + place) % ring_.size()]; }
  SendWork& front() { return ring_[first_]; }
  void pop() {
    first_ = (first_ + 1) % ring_.size();
    --used_;
  }
  void clear() { first_ = used_ = staged_ = 0; }

 private:
  std::vector<SendWork> ring_;
  std::size_t first_ = 0, used_ = 0, staged_ = 0;
};

}  // namespace gdrbench::softverbs
