#pragma once

#include <cstring>
#include <string>

#include "gdrbench/error.hpp"
#include "path/bounce.hpp"
#include "wire/queue_pair.hpp"

namespace gdrbench::path {

/// One lane's side of the wire: its bounce memory at both ends, requests on it, the control messages that are
/// under way, and the first thing that went wrong.
template <wire::Wire W>
class LanePort {
 public:
  /// Of the completions of control messages.
  static constexpr std::uint64_t control_id = std::uint64_t{1} << 47;

  LanePort(W& wire, const Case& c, std::uint32_t lane, const wire::Region& bounce)
      : slots(bounce_layout(c)), bounce_(bounce), wire_(&wire), lane_(lane) {
    receive_bytes_ = sizeof(ChunkHeader);
    if (slots.receives_data) receive_bytes_ += static_cast<std::uint32_t>(slots.chunk_bytes);
    for (std::uint64_t slot = 0; slot < slots.receives(); ++slot) post_receive(slot);
  }

  void connect(const wire::RemoteRegion& remote) { remote_ = remote; }

  /// Of this end's bounce memory.
  std::byte* at(std::uint64_t offset) const { return bounce_.address + offset; }
  template <class T>
  void put(std::byte* destination, const T& value) const {
    std::memcpy(destination, &value, sizeof value);
  }

  /// A request from or into `local` of this end's bounce memory, at `remote_offset` of the other's.
  wire::SendRequest request(Op op, std::uint64_t id, std::byte* local, std::uint64_t length,
                            std::uint64_t remote_offset) const {
    return {.id = id,
            .lane = lane_,
            .op = op,
            .address = local,
            .length = static_cast<std::uint32_t>(length),
            .lkey = bounce_.lkey,
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
                                           .lane = lane_,
                                           .address = at(slots.receive(slot)) - sizeof(ChunkHeader),
                                           .length = receive_bytes_,
                                           .lkey = bounce_.lkey});
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

  /// What the peer said cannot be; nothing of it is used.
  void distrust() {
    fail("the other end broke the protocol of the staged path, or bytes were changed on the way");
  }
  const std::string& failure() const { return failure_; }

  const BounceLayout slots;

 private:
  void fail(const std::string& what) {
    if (failure_.empty()) failure_ = what;
  }

  wire::Region bounce_;
  wire::RemoteRegion remote_;
  W* wire_;
  std::uint32_t lane_;
  std::uint32_t receive_bytes_ = 0;
  std::uint64_t control_posted_ = 0, control_done_ = 0;
  std::string failure_;
};

}  // namespace gdrbench::path
