#pragma once

#include <chrono>
#include <cstdint>

#include "gdrbench/error.hpp"
#include "wire/socket.hpp"

namespace gdrbench::measure {

/// A message came on the control channel before this rank's loop was over: another rank has failed, or the
/// run was given up. What the message says is the error to report.
class EndedEarly : public Error {
 public:
  EndedEarly() : Error("a message on the control channel ended the run early") {}
};

/// What a measuring loop looks at when nothing moves: the control channel, termination signals, and a limit
/// on standing still. The loops call `idle()` in every fruitless turn; it looks at the clock and the channel
/// only now and then, so that polling stays cheap.
class Watch {
 public:
  /// `control_fd` (a socket, or an epoll instance over several) becomes readable with a message: for rank 0
  /// that another rank failed, for the others also that the run is over, and for all that a remote is gone.
  Watch(int control_fd, std::chrono::milliseconds stall_limit, Deadline deadline = Deadline::max());

  /// Progress was made.
  void active() { moved_ = true; }
  /// Nothing moved in this turn. Returns false when the loop should end because the control channel has
  /// something to read. Throws PeerLost when nothing has moved for the stall limit, OutOfTime after the
  /// deadline, Interrupted on a signal.
  bool idle();
  /// As idle(), at once: for loops that have just slept.
  bool check();
  int control_fd() const { return control_fd_; }

 private:
  bool look(Deadline now);

  int control_fd_;
  std::chrono::milliseconds stall_limit_;
  Deadline deadline_;
  bool moved_ = true;  ///< since the last look
  std::uint32_t turns_ = 0;
  Deadline look_at_{};
  Deadline stalled_at_{};
};

}  // namespace gdrbench::measure
