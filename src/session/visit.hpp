#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "session/budget.hpp"
#include "session/channel.hpp"
#include "session/handshake.hpp"

namespace gdrbench::session {

/// One client's visit to a server: one session or several at the same time, in a thread each, which share the
/// limits. It is idle when all of them are.
class Visit {
 public:
  Visit(std::string client, std::shared_ptr<Limits> shared_limits)
      : address(std::move(client)), limits(std::move(shared_limits)) {}

  const std::string token = random_hex(16);  ///< told to the client, whose further sessions present it
  const std::string address;                 ///< of the client's first session
  const std::string since = utc_now();
  const std::shared_ptr<Limits> limits;

  /// While it lives, a session answers a request.
  class Work {
   public:
    explicit Work(Visit& visit) : visit_(visit) { ++visit_.working_; }
    ~Work() {
      visit_.last_active_ = std::chrono::steady_clock::now();
      --visit_.working_;
    }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

   private:
    Visit& visit_;
  };

  /// When the visit will have been idle for so long, as things are now.
  Deadline idle_until(std::chrono::milliseconds limit) const {
    return limit + (working_ > 0 ? std::chrono::steady_clock::now() : last_active_.load());
  }

 private:
  std::atomic<std::chrono::steady_clock::time_point> last_active_{std::chrono::steady_clock::now()};
  std::atomic<int> working_{0};
};

}  // namespace gdrbench::session
