#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "cuda/ipc.hpp"
#include "cuda/peer_link.hpp"
#include "gdrbench/path_proof.hpp"
#include "wire/ipc_lane.hpp"

namespace gdrbench::wire {

/// GPU to GPU within one node: the end that posts copies straight between its own memory and the peer's,
/// which CUDA IPC maps for it. No NIC and no CPU of the target has a part in that, as with a NIC's one-sided
/// operations; write and read are all there is. Only tokens travel by the lanes' sockets.
///
/// Needs cudaMalloc memory on both ends and completion by polling. Registered memory must outlive the wire.
class IpcWire {
 public:
  static constexpr bool one_sided_needs_target_cpu = false;

  /// Throws Unavailable when the GPU does not exist, CudaError.
  IpcWire(int gpu, const WireLimits& limits);
  /// Ends the copies, lets go of the peer's memory, and waits (a second at most) until the peer has let go of
  /// ours, which may be freed after that.
  ~IpcWire();
  IpcWire(const IpcWire&) = delete;
  IpcWire& operator=(const IpcWire&) = delete;

  /// Throws Unavailable when the memory cannot be shared.
  Region register_memory(const MemoryView& view);
  nlohmann::json offer() const;
  /// Throws Unavailable with the reason when the ends are not on one node, or their GPUs do not reach each
  /// other; Error for an offer that does not fit.
  void connect(const nlohmann::json& peer_offer, std::vector<Socket> sockets);
  /// EOPNOTSUPP for what is neither write, read nor a zero-length send; EINVAL outside the peer's memory.
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
  std::string uuid_, peer_uuid_;
  std::optional<cuda::PeerLink> link_;
  std::vector<Exported> exported_;
  std::vector<Imported> imported_;
  std::vector<IpcLane> lanes_;
  std::deque<Completion> completed_;
};

static_assert(Wire<IpcWire>);

}  // namespace gdrbench::wire
