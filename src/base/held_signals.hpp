#pragma once

#include <csignal>

namespace gdrbench {

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
