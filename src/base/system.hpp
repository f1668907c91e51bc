#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <utility>

namespace gdrbench {

/// CLOCK_MONOTONIC_RAW, nanoseconds: not slewed by NTP.
inline std::int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}
/// The same in microseconds.
inline double now_us() {
  return static_cast<double>(now_ns()) * 1e-3;
}

/// When something must be over.
using Deadline = std::chrono::steady_clock::time_point;
inline Deadline after(std::chrono::milliseconds span) {
  return std::chrono::steady_clock::now() + span;
}

/// Sole owner of a file descriptor.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// For as long as it lives, signals wait that come for the calling thread; threads started meanwhile keep it
/// so.
class HeldSignals {
 public:
  enum class Which { ending, all };  ///< ending: SIGINT and SIGTERM
  explicit HeldSignals(Which which) {
    sigset_t held;
    sigfillset(&held);
    if (which == Which::ending) {
      sigemptyset(&held);
      sigaddset(&held, SIGINT);
      sigaddset(&held, SIGTERM);
    }
    pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  ~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace gdrbench
