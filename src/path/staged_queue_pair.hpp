#pragma once

#include <atomic>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "gdrbench/error.hpp"
#include "gdrbench/memory.hpp"
#include "memory/copier.hpp"
#include "path/layout.hpp"
#include "path/stages.hpp"
#include "path/staging_layout.hpp"
#include "wire/queue_pair.hpp"

namespace gdrbench::path {

/// One queue pair's side of the wire: its staging buffer at both ends, requests on it, the control messages
/// that are under way, and the first thing that went wrong.
template <wire::Wire W>
class StagingEndpoint {
 public:
  /// Of the completions of control messages.
  static constexpr std::uint64_t control_id = std::uint64_t{1} << 47;

  StagingEndpoint(W& wire, const Case& c, std::uint32_t queue_pair, const wire::Region& staging)
      : slots(staging_layout(c)), staging_(staging), wire_(&wire), queue_pair_(queue_pair) {
    receive_bytes_ = sizeof(ChunkHeader);
    if (slots.receives_data) receive_bytes_ += static_cast<std::uint32_t>(slots.chunk_bytes);
    for (std::uint64_t slot = 0; slot < slots.receives(); ++slot) post_receive(slot);
  }

  void connect(const wire::RemoteRegion& remote) { remote_ = remote; }

  /// Of this end's staging buffer.
  std::byte* at(std::uint64_t offset) const { return staging_.address + offset; }
  template <class T>
  void put(std::byte* destination, const T& value) const {
    std::memcpy(destination, &value, sizeof value);
  }

  /// A request from or into `local` of this end's staging buffer, at `remote_offset` of the other's.
  wire::SendRequest request(Op op, std::uint64_t id, std::byte* local, std::uint64_t length,
                            std::uint64_t remote_offset) const {
    return {.id = id,
            .queue_pair = queue_pair_,
            .op = op,
            .address = local,
            .length = static_cast<std::uint32_t>(length),
            .lkey = staging_.lkey,
            .remote_address = remote_.address + remote_offset,
            .rkey = remote_.rkey,
            .inline_data = op != Op::read && length <= wire_->inline_bytes()};
  }
  bool post(const wire::SendRequest& request) {
    const int error = wire_->post_send(request);
    if (error != 0) fail("posting a send request: " + errno_name(error));
    return error == 0;
  }
  void post_receive(std::uint64_t slot) {
    const int error = wire_->post_receive({.id = slot,
                                           .queue_pair = queue_pair_,
                                           .address = at(slots.receive(slot)) - sizeof(ChunkHeader),
                                           .length = receive_bytes_,
                                           .lkey = staging_.lkey});
    if (error != 0) fail("posting a receive request: " + errno_name(error));
  }

  /// False when as many as there are slots for are under way.
  bool control(ChunkHeader::Kind kind, std::uint64_t value) {
    if (control_posted_ - control_done_ == slots.control_slots) return false;
    std::byte* const source = at(slots.control(control_posted_));
    put(source, ChunkHeader{kind, static_cast<std::uint32_t>(value)});
    if (!post(request(Op::send, control_id, source, sizeof(ChunkHeader), 0))) return false;
    ++control_posted_;
    return true;
  }
  void control_completed() { ++control_done_; }

  /// What the remote end said cannot be; nothing of it is used.
  void protocol_violation() {
    fail("the other end broke the protocol of the staged path, or bytes were changed on the way");
  }
  const std::string& failure() const { return failure_; }

  const StagingLayout slots;

 private:
  void fail(const std::string& what) {
    if (failure_.empty()) failure_ = what;
  }

  wire::Region staging_;
  wire::RemoteRegion remote_;
  W* wire_;
  std::uint32_t queue_pair_;
  std::uint32_t receive_bytes_ = 0;
  std::uint64_t control_posted_ = 0, control_done_ = 0;
  std::string failure_;
};

/// One queue pair of a staged path. Payload leaves as chunks: copied into an outgoing staging slot, sent when
/// the target has a free incoming slot, copied from there into the payload; all three at once for different
/// chunks. The target returns slots as credits, which ride on its own data where there is some.
///
/// send: header and payload into a posted receive. write_imm: payload into the next incoming slot, the credit
/// in the immediate. write: payload, then an Arrival that the target polls. read: the poster asks (request),
/// the target stages and announces (ready), the poster reads.
///
/// All counters of chunks count from the queue pair's beginning and only rise.
template <wire::Wire W>
class StagedQueuePair {
 public:
  struct Ends {
    const Buffer* outgoing = nullptr;  ///< payload that leaves here, null if none
    const Buffer* incoming = nullptr;
    memory::CopierOptions copies;  ///< but for what follows from the payload and the way
    Stages* stages = nullptr;      ///< null: not timed
  };

  StagedQueuePair(W& wire, const Case& c, std::uint32_t index, const Ends& ends, const wire::Region& staging)
      : endpoint_(wire, c, index, staging),
        slots_(endpoint_.slots),
        reads_(c.op == Op::read),
        op_(c.op),
        index_(index),
        depth_(c.depth),
        payload_(layout_of(c)),
        ends_(ends),
        arrived_slots_(slots_.receives()),
        copy_out_(copier(ends.outgoing, memory::Towards::host)),
        copy_in_(copier(ends.incoming, memory::Towards::gpu)) {}

  void connect(const wire::RemoteRegion& remote) { endpoint_.connect(remote); }

  /// Begins a round of `quota` messages to post; the previous one is over.
  void start(std::uint64_t quota) {
    quota_ = quota;
    posted_ = 0;
    done_before_ = messages(done_chunks());
    accepted_before_ = messages(accepted_chunks());
    out_before_ = messages(staged_);
    in_before_ = messages(copied_in_);
    tokens_ = 0;
    copy_out_->start();
    copy_in_->start();
  }
  /// No kernel waits for this queue pair afterwards, until the next round.
  void rest() {
    copy_out_->rest();
    copy_in_->rest();
  }

  /// Lets one more message go, if the round and the window allow it.
  bool try_post() {
    if (posted_ == quota_ || posted_ - done() >= depth_) return false;
    ++posted_;
    reads_ ? ++requested_ : wanted_ += slots_.chunks_per_message;
    return true;
  }
  void post_token() { ++tokens_due_; }

  /// Moves whatever can move without a completion from the wire; true if something did.
  bool advance() {
    bool moved = take_arrival_counter();
    moved |= stage_out();
    moved |= reads_ ? read_ready() : send_staged();
    moved |= stage_in();
    moved |= send_control();
    return moved;
  }

  void take(const wire::Completion& c) {
    if (c.kind == wire::Completion::Kind::received) {
      received(c);
    } else if (c.id == endpoint_.control_id) {
      endpoint_.control_completed();
    } else {
      std::uint64_t& done = reads_ ? arrived_ : sent_;
      if (ends_.stages != nullptr) ends_.stages->wire.end(c.id - done);
      done = c.id;
    }
  }

  std::uint64_t posted() const { return posted_; }
  std::uint64_t done() const { return messages(done_chunks()) - done_before_; }
  std::uint64_t accepted() const { return messages(accepted_chunks()) - accepted_before_; }
  std::uint64_t tokens() const { return tokens_; }
  bool copies_in_flight() const { return staged_out_ < staged_ || staged_in_ < copied_in_; }
  const std::string& failure() const { return endpoint_.failure(); }

 private:
  std::unique_ptr<memory::Copier> copier(const Buffer* payload, memory::Towards towards) const {
    memory::CopierOptions options = ends_.copies;
    options.towards = towards;
    if (payload != nullptr) {
      options.payload = payload->kind();
      options.range = {payload->data(), payload->size()};
      options.gpu = payload->gpu();
    }
    return memory::make_copier(options);
  }
  std::uint64_t messages(std::uint64_t chunks) const { return chunks / slots_.chunks_per_message; }
  std::uint64_t chunk_length(std::uint64_t chunk) const {
    return std::min(slots_.chunk_bytes,
                    payload_.size - chunk % slots_.chunks_per_message * slots_.chunk_bytes);
  }
  std::uint64_t payload_offset(std::uint64_t chunk, std::uint64_t messages_before) const {
    return payload_.offset(index_, messages(chunk) - messages_before) +
           chunk % slots_.chunks_per_message * slots_.chunk_bytes;
  }
  std::uint64_t done_chunks() const { return reads_ ? staged_in_ : sent_; }
  std::uint64_t accepted_chunks() const { return reads_ ? remote_freed_ : staged_in_; }
  // Chunks of the remote end that need their slot no more: copied out of ours, or read out of its own.
  std::uint64_t freed() const { return reads_ ? arrived_ : staged_in_; }

  bool stage_out() {
    bool moved = false;
    const std::uint64_t free = reads_ ? remote_freed_ : sent_;
    while (staged_ < wanted_ && staged_ - free < slots_.outgoing_slots && copy_out_->has_room()) {
      if (ends_.stages != nullptr) ends_.stages->gpu_to_host.begin();
      copy_out_->submit(endpoint_.at(slots_.outgoing(staged_)),
                        ends_.outgoing->data() + payload_offset(staged_, out_before_), chunk_length(staged_));
      ++staged_;
      moved = true;
    }
    if (staged_out_ < staged_) {
      const std::uint64_t finished = copy_out_->finished();
      if (ends_.stages != nullptr) ends_.stages->gpu_to_host.end(finished - staged_out_);
      moved |= finished != staged_out_;
      staged_out_ = finished;
    }
    return moved;
  }

  bool send_staged() {
    bool moved = false;
    while (on_wire_ < staged_out_ && on_wire_ - remote_freed_ < slots_.incoming_slots) {
      const std::uint64_t chunk = on_wire_;
      const auto credit = static_cast<std::uint32_t>(freed());
      std::byte* source = endpoint_.at(slots_.outgoing(chunk));
      std::uint64_t length = chunk_length(chunk);
      if (op_ == Op::send) {
        source -= sizeof(ChunkHeader);
        length += sizeof(ChunkHeader);
        endpoint_.put(source, ChunkHeader{ChunkHeader::Kind::data, credit});
      }
      wire::SendRequest request =
          endpoint_.request(op_, chunk + 1, source, length, slots_.incoming(chunk % slots_.incoming_slots));
      request.immediate = credit;
      request.signaled = op_ != Op::write;  // its Arrival is
      if (!endpoint_.post(request) || (op_ == Op::write && !post_arrival(chunk, credit))) break;
      if (ends_.stages != nullptr) ends_.stages->wire.begin();
      credited_ = freed();
      ++on_wire_;
      moved = true;
    }
    return moved;
  }

  bool post_arrival(std::uint64_t chunk, std::uint32_t credit) {
    std::byte* const source = endpoint_.at(slots_.arrival_source(chunk));
    endpoint_.put(source, Arrival{static_cast<std::uint32_t>(chunk + 1), credit});
    return endpoint_.post(endpoint_.request(Op::write, chunk + 1, source, sizeof(Arrival), slots_.arrival()));
  }

  bool read_ready() {
    bool moved = false;
    while (reads_posted_ < remote_ready_ && reads_posted_ - staged_in_ < slots_.incoming_slots) {
      const std::uint64_t chunk = reads_posted_;
      std::byte* const target = endpoint_.at(slots_.incoming(chunk % slots_.incoming_slots));
      if (!endpoint_.post(
              endpoint_.request(Op::read, chunk + 1, target, chunk_length(chunk), slots_.outgoing(chunk))))
        break;
      if (ends_.stages != nullptr) ends_.stages->wire.begin();
      ++reads_posted_;
      moved = true;
    }
    return moved;
  }

  // Plain writes raise no completion here: the remote end's last write is a counter in our memory.
  bool take_arrival_counter() {
    if (op_ != Op::write || ends_.incoming == nullptr) return false;
    // One 8-byte load, so that both halves are of the same write.
    auto& cell = *reinterpret_cast<std::uint64_t*>(endpoint_.at(slots_.arrival()));
    const std::uint64_t bits = std::atomic_ref<std::uint64_t>(cell).load(std::memory_order_acquire);
    const auto arrival = std::bit_cast<Arrival>(bits);
    catch_up(remote_freed_, arrival.freed, on_wire_);
    return catch_up(arrived_, arrival.chunks, staged_in_ + slots_.incoming_slots);
  }

  void received(const wire::Completion& c) {
    if (c.has_immediate) {
      if (!may_arrive(Op::write_imm)) return;
      catch_up(remote_freed_, c.immediate, on_wire_);
      ++arrived_;
    } else {
      ChunkHeader header;
      if (c.length < sizeof header) return endpoint_.protocol_violation();
      std::memcpy(&header, endpoint_.at(slots_.receive(c.id)) - sizeof header, sizeof header);
      switch (header.kind) {
        case ChunkHeader::Kind::data:
          if (!may_arrive(Op::send) || c.length != sizeof header + chunk_length(arrived_))
            return endpoint_.protocol_violation();
          catch_up(remote_freed_, header.value, on_wire_);
          arrived_slots_[arrived_++ % arrived_slots_.size()] = c.id;
          return;  // posted again when the slot has been copied
        case ChunkHeader::Kind::credit:
          catch_up(remote_freed_, header.value, reads_ ? staged_out_ : on_wire_);
          break;
        case ChunkHeader::Kind::token:
          ++tokens_;
          break;
        case ChunkHeader::Kind::ready:
          catch_up(remote_ready_, header.value, requested_ * slots_.chunks_per_message);
          break;
        case ChunkHeader::Kind::request: {
          if (!reads_ || ends_.outgoing == nullptr) return endpoint_.protocol_violation();
          std::uint64_t asked = messages(wanted_);
          catch_up(asked, header.value, messages(remote_freed_ + slots_.incoming_slots) + depth_);
          wanted_ = asked * slots_.chunks_per_message;
          break;
        }
        default:
          return endpoint_.protocol_violation();
      }
    }
    endpoint_.post_receive(c.id);
  }

  bool stage_in() {
    bool moved = false;
    while (copied_in_ < arrived_ && copy_in_->has_room()) {
      if (ends_.stages != nullptr) ends_.stages->host_to_gpu.begin();
      copy_in_->submit(ends_.incoming->data() + payload_offset(copied_in_, in_before_),
                       endpoint_.at(slots_.incoming(arrival_slot(copied_in_))), chunk_length(copied_in_));
      ++copied_in_;
    }
    if (staged_in_ < copied_in_) {
      const std::uint64_t finished = copy_in_->finished();
      if (ends_.stages != nullptr) ends_.stages->host_to_gpu.end(finished - staged_in_);
      for (; staged_in_ < finished; ++staged_in_) {
        if (op_ == Op::send) endpoint_.post_receive(arrival_slot(staged_in_));
        moved = true;
      }
    }
    return moved;
  }
  std::uint64_t arrival_slot(std::uint64_t chunk) const {
    return op_ == Op::send ? arrived_slots_[chunk % arrived_slots_.size()] : chunk % slots_.incoming_slots;
  }

  bool send_control() {
    using Kind = ChunkHeader::Kind;
    bool moved = false;
    while (tokens_due_ > 0 && endpoint_.control(Kind::token, 0)) {
      --tokens_due_;
      moved = true;
    }
    if (requested_ != requests_told_ && endpoint_.control(Kind::request, requested_)) {
      requests_told_ = requested_;
      moved = true;
    }
    if (reads_ && staged_out_ != ready_told_ && endpoint_.control(Kind::ready, staged_out_)) {
      ready_told_ = staged_out_;
      moved = true;
    }
    // Half a ring at a time; the reader tells at once when nothing else is under way, since its target may
    // have nothing to go on with.
    const std::uint64_t owed = freed() - credited_;
    const bool worth_it =
        owed >= std::max(1U, slots_.incoming_slots / 2) || (reads_ && owed > 0 && arrived_ == remote_ready_);
    if (worth_it && endpoint_.control(Kind::credit, freed())) {
      credited_ = freed();
      moved = true;
    }
    return moved;
  }

  // A chunk for this end, with a slot that the remote end has been given.
  bool may_arrive(Op op) {
    const bool may = op_ == op && ends_.incoming != nullptr && arrived_ - staged_in_ < slots_.incoming_slots;
    if (!may) endpoint_.protocol_violation();
    return may;
  }

  // Counters travel as 32 bits; less than 2^31 are ever under way, so the signed difference is exact. Old
  // news, such as an Arrival that a credit has overtaken, changes nothing; more than `most` is a lie.
  bool catch_up(std::uint64_t& counter, std::uint32_t told, std::uint64_t most) {
    const auto difference = static_cast<std::int32_t>(told - static_cast<std::uint32_t>(counter));
    if (difference <= 0) return false;
    const std::uint64_t risen = counter + static_cast<std::uint32_t>(difference);
    if (risen > most) {
      endpoint_.protocol_violation();
      return false;
    }
    counter = risen;
    return true;
  }

  StagingEndpoint<W> endpoint_;
  StagingLayout slots_;
  bool reads_;
  Op op_;
  std::uint32_t index_;
  std::uint32_t depth_;
  Layout payload_;
  Ends ends_;

  // The round, in messages.
  std::uint64_t quota_ = 0, posted_ = 0, done_before_ = 0, accepted_before_ = 0, out_before_ = 0,
                in_before_ = 0;

  // Outgoing chunks: wanted ≥ staged (copy submitted) ≥ staged_out (copied) ≥ on_wire ≥ sent.
  std::uint64_t wanted_ = 0, staged_ = 0, staged_out_ = 0, on_wire_ = 0, sent_ = 0;
  // Incoming chunks: arrived ≥ copied_in (copy submitted) ≥ staged_in (copied) ≥ credited (told to the remote
  // end).
  std::uint64_t arrived_ = 0, copied_in_ = 0, staged_in_ = 0, credited_ = 0;
  std::vector<std::uint64_t> arrived_slots_;  ///< send: the receive that holds an arrived chunk
  std::uint64_t remote_freed_ = 0;            ///< chunks of ours whose slot the remote end has freed
  // Read: messages asked for, and chunks ready.
  std::uint64_t requested_ = 0, requests_told_ = 0, ready_told_ = 0, remote_ready_ = 0, reads_posted_ = 0;
  std::uint64_t tokens_ = 0, tokens_due_ = 0;

  std::unique_ptr<memory::Copier> copy_out_, copy_in_;
};

}  // namespace gdrbench::path
