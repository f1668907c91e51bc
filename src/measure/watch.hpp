#pragma once

#include <atomic>
#include <cstdint>

#include "wire/socket.hpp"

namespace gdrbench::measure {

/// What a measuring loop looks at when nothing moves: the control channel, termination signals, and a limit on
/// standing still. The loops call `idle()` in every fruitless turn; it looks at the clock and the channel only
/// now and then, so that polling stays cheap.
class Watch {
 public:
  /// `control_fd` becomes readable when the other end has something to say: for the responder that the run is
  /// over, for the initiator that the responder failed; or at either end that the peer is gone.
  Watch(int control_fd, std::chrono::milliseconds stall_limit);

  /// Progress was made.
  void active() { idle_turns_ = 0; }
  /// Nothing moved in this turn. Returns false when the loop should end because the control channel has
  /// something to read. Throws PeerLost when nothing has moved for the stall limit, Interrupted on a signal.
  bool idle();
  /// As idle(), at once: for loops that have just slept.
  bool check();
  int control_fd() const { return control_fd_; }

 private:
  int control_fd_;
  std::chrono::milliseconds stall_limit_;
  std::uint32_t idle_turns_ = 0;
  wire::Deadline stalled_at_{};
};


}  // namespace gdrbench::measure
