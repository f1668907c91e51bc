#pragma once

#include <poll.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ring.hpp"
#include "cuda/p2p.hpp"
#include "cuda/stream.hpp"
#include "gdrbench/path_proof.hpp"
#include "wire/queue_pair.hpp"

namespace gdrbench::wire {

/// One stream of copies as a queue pair, with a socket beside it for the zero-length messages (tokens) that
/// start and end rounds: one byte each. Copies complete in order of posting, and a token leaves when those
/// posted before it have completed, since it says that their data is in place. Throws PeerLost when the
/// socket ends, CudaError when a copy failed.
class IpcQueuePair {
 public:
  IpcQueuePair(int gpu, std::uint32_t index, const WireLimits& limits);

  void connect(Socket socket);
  /// Both addresses are valid for copies by the queue pair's GPU.
  int post_copy(const SendRequest& request, std::byte* destination, const std::byte* source);
  int post_token(const SendRequest& request);
  int post_receive(const ReceiveRequest& request);
  /// Appends what finished.
  void progress(Ring<Completion>& completed);
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
  void finish_sends(Ring<Completion>& completed);
  void take_tokens(Ring<Completion>& completed);
  bool send_byte();
  [[noreturn]] void lost(int error, const char* tried) const;

  int gpu_;
  std::uint32_t index_;
  WireLimits limits_;
  cuda::Stream stream_;
  std::vector<cuda::Event> spare_;
  Ring<Send> sends_;  ///< that have a mark, oldest first
  std::uint64_t outstanding_ = 0;
  std::uint64_t unmarked_ = 0;  ///< copies posted since the last mark
  Ring<ReceiveRequest> receives_;
  Socket socket_;
};

/// GPU to GPU within one node: the end that posts copies straight between its own memory and the remote
/// end's, which CUDA IPC maps for it. No NIC and no CPU of the target has a part in that, as with a NIC's
/// one-sided operations; write and read are all there is. Only tokens travel by the queue pairs' sockets.
///
/// Needs cudaMalloc memory on both ends and completion by polling. Registered memory must outlive the wire.
class IpcWire {
 public:
  static constexpr bool one_sided_needs_target_cpu = false;

  /// Throws Unavailable when the GPU does not exist, CudaError.
  IpcWire(int gpu, const WireLimits& limits);
  /// Ends the copies, lets go of the remote end's memory, and waits (a second at most) until the remote end
  /// has let go of ours, which may be freed after that.
  ~IpcWire();
  IpcWire(const IpcWire&) = delete;
  IpcWire& operator=(const IpcWire&) = delete;

  /// Throws Unavailable when the memory cannot be shared.
  Region register_memory(const MemoryView& view);
  nlohmann::json offer() const;
  /// Throws Unavailable with the reason when the ends are not on one node, or their GPUs do not reach each
  /// other; Error for an offer that does not fit.
  void connect(const nlohmann::json& remote_offer, std::vector<Socket> sockets);
  /// EOPNOTSUPP for what is neither write, read nor a zero-length send; EINVAL outside the remote end's
  /// memory.
  int post_send(const SendRequest& request);
  int post_receive(const ReceiveRequest& request);
  std::size_t poll(std::span<Completion> out);
  /// Copies cannot be waited for by poll(2): with some in flight this only yields the processor.
  void wait(int extra_fd, int timeout_ms);
  std::uint64_t max_message() const { return (std::uint64_t{1} << 31) - 4096; }
  std::uint32_t inline_bytes() const { return 0; }
  FabricKind fabric() const { return FabricKind::none; }
  IpcProof describe() const;

 private:
  struct Exported {
    Region region;
    cuda::IpcExport memory;
  };
  struct Imported {
    RemoteRegion region;
    cuda::ImportedMemory memory;
  };
  std::byte* resolve(const SendRequest& request) const;
  void import(const nlohmann::json& offered);
  void say_goodbye() noexcept;

  int gpu_;
  std::string uuid_, remote_uuid_;
  std::optional<cuda::P2pLink> link_;
  std::vector<Exported> exported_;
  std::vector<Imported> imported_;
  std::vector<IpcQueuePair> queue_pairs_;
  Ring<Completion> completed_;
  std::vector<pollfd> waited_for_{1};  ///< room for another descriptor, then the sockets of all queue pairs
};

static_assert(Wire<IpcWire>);

}  // namespace gdrbench::wire
