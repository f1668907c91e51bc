#include "wire/wake_up.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "gdrbench/error.hpp"

namespace gdrbench::wire {

WakeUp::WakeUp() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_) throw SystemError(errno, "eventfd");
}

void WakeUp::is_awake() {
  sleeps_ = false;
  // Always: who told may write only after this, and that must not keep the next sleep from being one for
  // ever.
  std::uint64_t times = 0;
  [[maybe_unused]] const ssize_t taken = read(event_.get(), &times, sizeof times);
}

void WakeUp::tell() {
  if (!sleeps_.exchange(false)) return;
  const std::uint64_t once = 1;
  [[maybe_unused]] const ssize_t told = write(event_.get(), &once, sizeof once);
}

}  // namespace gdrbench::wire
