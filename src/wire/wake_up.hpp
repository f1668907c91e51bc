#pragma once

#include <atomic>

#include "wire/socket.hpp"

namespace gdrbench::wire {

/// Lets one thread sleep until others have something for it, by an eventfd. Telling one that is awake costs
/// no system call.
///
/// The sleeper: will_sleep(); look once more whether there is something; if not, sleep until fd() is
/// readable; is_awake(). The others: leave something where the sleeper looks, then tell().
class WakeUp {
 public:
  WakeUp();  ///< throws SystemError

  int fd() const { return event_.get(); }
  void will_sleep() { sleeps_ = true; }
  void is_awake();
  void tell();

 private:
  FileDescriptor event_;
  std::atomic<bool> sleeps_ = false;
};

}  // namespace gdrbench::wire
