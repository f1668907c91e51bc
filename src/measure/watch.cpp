#include "measure/watch.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <ctime>

#include "gdrbench/error.hpp"
#include "gdrbench/interrupt.hpp"

namespace gdrbench::measure {
namespace {

using namespace std::chrono_literals;

// Turns between looks at the coarse clock (about 5 ns each), and turns between looks at the channel (a system
// call).
constexpr std::uint32_t clock_turns = 8;
constexpr std::uint32_t channel_turns = 1024;
// Also looked at after so long, for loops whose turns are slow or who seldom stand still.
constexpr auto max_unwatched = 50ms;

// Of steady_clock's time line, at the resolution of the kernel's tick.
Deadline coarse_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return Deadline(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

}  // namespace

Watch::Watch(int control_fd, std::chrono::milliseconds stall_limit, Deadline deadline)
    : control_fd_(control_fd), stall_limit_(stall_limit), deadline_(deadline) {}

bool Watch::idle() {
  if (++turns_ % clock_turns != 0) return true;
  const Deadline now = coarse_now();
  if (turns_ % channel_turns != 0 && now < look_at_) return true;
  return look(now);
}

bool Watch::check() {
  return look(coarse_now());
}

bool Watch::look(Deadline now) {
  throw_if_interrupted();
  look_at_ = now + max_unwatched;
  pollfd channel{control_fd_, POLLIN | POLLRDHUP, 0};
  if (::poll(&channel, 1, 0) > 0) return false;
  if (now >= deadline_) throw OutOfTime();
  if (moved_) {
    moved_ = false;
    stalled_at_ = now + stall_limit_;
  } else if (now >= stalled_at_) {
    throw PeerLost(fmt::format(
        "nothing moved for {:.3g} s: the other end is stuck, or the network drops the packets of this case",
        std::chrono::duration<double>(stall_limit_).count()));
  }
  return true;
}

}  // namespace gdrbench::measure
