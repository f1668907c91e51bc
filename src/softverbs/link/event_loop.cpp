#include "link/event_loop.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace gdrbench::softverbs {
namespace {

// Tags of what the loop itself waits for; those of handlers have a generation in the upper half.
constexpr std::uint64_t doorbell_tag = 1;
constexpr std::uint64_t interrupt_tag = 2;

[[noreturn]] void fail(const char* tried) {
  throw std::system_error(errno, std::generic_category(), std::string("softverbs event loop: ") + tried);
}

void watch(int epoll, int descriptor, std::uint32_t events, std::uint64_t tag) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) != 0) fail("epoll_ctl(EPOLL_CTL_ADD)");
}

// epoll_wait counts in milliseconds, RNR timers in microseconds: so the sleep is a ppoll.
void sleep_until_readable(int descriptor, Clock::time_point deadline) {
  using namespace std::chrono;
  constexpr nanoseconds longest = 1h;
  const nanoseconds left = std::clamp<nanoseconds>(deadline - Clock::now(), 0ns, longest);
  const auto whole = duration_cast<seconds>(left);
  timespec timeout{};
  timeout.tv_sec = whole.count();
  timeout.tv_nsec = (left - whole).count();
  pollfd readable{descriptor, POLLIN, 0};
  ppoll(&readable, 1, &timeout, nullptr);
}

// One read is enough: what it leaves behind makes the next wait return at once.
void drain(int descriptor) {
  std::array<char, 4096> ignored;
  while (read(descriptor, ignored.data(), ignored.size()) < 0 && errno == EINTR) {
  }
}

}  // namespace

EventLoop::EventLoop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) fail("epoll_create1");
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) fail("pipe2");
  doorbell_read_ = Descriptor(ends[0]);
  doorbell_write_ = Descriptor(ends[1]);
  interrupt_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!interrupt_) fail("eventfd");
  watch(epoll_.get(), doorbell_read_.get(), EPOLLIN, doorbell_tag);
  watch(epoll_.get(), interrupt_.get(), EPOLLIN, interrupt_tag);
}

void EventLoop::add(int descriptor, std::uint32_t events, Handler handler) {
  auto shared = std::make_shared<Handler>(std::move(handler));
  const std::lock_guard guard(lock_);
  const std::uint32_t generation = ++last_generation_ == 0 ? ++last_generation_ : last_generation_;
  entries_[descriptor] = {generation, std::move(shared)};
  try {
    watch(epoll_.get(), descriptor, events, std::uint64_t{generation} << 32 | std::uint32_t(descriptor));
  } catch (...) {
    entries_.erase(descriptor);
    throw;
  }
}

void EventLoop::after_fork_in_child() {
  const Descriptor nowhere(open("/dev/null", O_RDWR | O_CLOEXEC));
  const auto lead_nowhere = [&](int descriptor) { dup3(nowhere.get(), descriptor, O_CLOEXEC); };
  lead_nowhere(epoll_.get());
  for (const auto& [descriptor, entry] : entries_) lead_nowhere(descriptor);
  lock_.unlock();
}

void EventLoop::remove(int descriptor) {
  const std::lock_guard guard(lock_);
  if (entries_.erase(descriptor) != 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
}

std::shared_ptr<EventLoop::Handler> EventLoop::find(std::uint64_t tag) {
  const std::lock_guard guard(lock_);
  const auto found = entries_.find(int(tag & 0xffffffff));
  if (found == entries_.end() || found->second.generation != tag >> 32) return nullptr;
  return found->second.handler;
}

void EventLoop::wait(Clock::time_point deadline) {
  if (deadline > Clock::now()) sleep_until_readable(epoll_.get(), deadline);
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(epoll_.get(), events.data(), int(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[i];
    if (event.data.u64 == doorbell_tag) {
      drain(doorbell_read_.get());
    } else if (event.data.u64 == interrupt_tag) {
      drain(interrupt_.get());
    } else if (const auto handler = find(event.data.u64)) {
      (*handler)(event.events);
    }
  }
}

void EventLoop::nap(Clock::time_point deadline) {
  sleep_until_readable(interrupt_.get(), deadline);
  drain(interrupt_.get());
}

void EventLoop::interrupt() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(interrupt_.get(), &one, sizeof one);
}

}  // namespace gdrbench::softverbs
