#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "cuda/stream.hpp"
#include "wire/queue_pair.hpp"

namespace gdrbench::wire {

/// One stream of copies as a queue pair, with a socket beside it for the zero-length messages (tokens) that
/// start and end rounds: one byte each. Copies complete in order of posting, and a token leaves when those
/// posted before it have completed, since it says that their data is in place. Throws PeerLost when the
/// socket ends, CudaError when a copy failed.
class IpcLane {
 public:
  IpcLane(int gpu, std::uint32_t index, const WireLimits& limits);

  void connect(Socket socket);
  /// Both addresses are valid for copies by the lane's GPU.
  int post_copy(const SendRequest& request, std::byte* destination, const std::byte* source);
  int post_token(const SendRequest& request);
  int post_receive(const ReceiveRequest& request);
  /// Appends what finished.
  void progress(std::deque<Completion>& completed);
  /// Returns when no copy is in flight any more; says on stderr what failed.
  void drain() noexcept;
  bool is_copying() const { return !sends_.empty(); }
  int fd() const { return socket_.fd(); }

 private:
  struct Send {
    std::uint64_t id = 0;
    std::uint64_t requests = 0;        ///< this one and the unsignaled ones before it
    std::optional<cuda::Event> after;  ///< of the copies up to here; none where the last Send's covers them
    bool signaled = true;
    bool token = false;
  };

  bool has_room() const { return outstanding_ < limits_.send_depth; }
  void mark(const SendRequest& request, bool token);
  void finish_sends(std::deque<Completion>& completed);
  void take_tokens(std::deque<Completion>& completed);
  bool send_byte();
  [[noreturn]] void lost(int error, const char* tried) const;

  int gpu_;
  std::uint32_t index_;
  WireLimits limits_;
  cuda::Stream stream_;
  std::vector<cuda::Event> spare_;
  std::deque<Send> sends_;  ///< that have a mark, oldest first
  std::uint64_t outstanding_ = 0;
  std::uint64_t unmarked_ = 0;  ///< copies posted since the last mark
  std::deque<ReceiveRequest> receives_;
  Socket socket_;
};

}  // namespace gdrbench::wire
