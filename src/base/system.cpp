#include "base/system.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>

#include "gdrbench/error.hpp"
#include "gdrbench/interrupt.hpp"

namespace gdrbench {

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0 && ::close(fd_) != 0 && errno != EINTR)
    fmt::print(stderr, "gdrbench: closing descriptor {}: {}\n", fd_, errno_name(errno));
}

namespace {

std::atomic<bool> signal_arrived{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set in a signal handler");

extern "C" void on_termination_signal(int number) {
  if (signal_arrived.exchange(true)) {
    std::signal(number, SIG_DFL);
    std::raise(number);
  }
}

}  // namespace

void handle_termination_signals() {
  struct sigaction action {};
  action.sa_handler = on_termination_signal;  // no SA_RESTART: blocking calls must return EINTR
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() {
  return signal_arrived.load(std::memory_order_relaxed);
}

void throw_if_interrupted() {
  if (interrupted()) throw Interrupted();
}

}  // namespace gdrbench
