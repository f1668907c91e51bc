#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "base/error_text.hpp"

namespace gdrbench::session {

/// Lets several threads use the log function of ServeOptions, one at a time. Lines may repeat what strangers
/// sent: nothing in them can steer a terminal or begin another line.
class Log {
 public:
  explicit Log(std::function<void(const std::string&)> write) : write_(std::move(write)) {}
  void operator()(const std::string& line) {
    const std::lock_guard lock(mutex_);
    if (write_) write_(printable(line));
  }

 private:
  std::mutex mutex_;
  std::function<void(const std::string&)> write_;
};

}  // namespace gdrbench::session
