#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace gdrbench::cli {

/// The responder of --loopback: a child process that serves one client on a free port of 127.0.0.1, so that
/// the CPU cost of both ends can be told apart. Make it before anything touches a GPU or an RDMA device:
/// neither survives a fork. Ended by the destructor, and with this process.
class LoopbackResponder {
 public:
  LoopbackResponder();
  ~LoopbackResponder();
  LoopbackResponder(const LoopbackResponder&) = delete;
  LoopbackResponder& operator=(const LoopbackResponder&) = delete;
  std::uint16_t port() const { return port_; }
  const std::string& key() const { return key_; }
  /// The signal that ended it, for which it is waited a moment; 0 while it runs, or where it ended otherwise.
  int killed_by();

 private:
  pid_t child_ = -1;  ///< −1 once it was waited for
  std::uint16_t port_ = 0;
  std::string key_;
};

}  // namespace gdrbench::cli
