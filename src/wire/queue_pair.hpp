#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "gdrbench/case.hpp"
#include "gdrbench/memory_view.hpp"
#include "wire/socket.hpp"

/// The small queue-pair interface that every wire offers. A wire holds one or more *queue pairs*, each a
/// connected queue pair (or socket) with messages delivered in order, and one completion queue for all of
/// them.
namespace gdrbench::wire {

/// Memory that the wire can send from and receive into.
struct Region {
  std::byte* address = nullptr;
  std::uint64_t length = 0;
  std::uint32_t lkey = 0;
  std::uint32_t rkey = 0;
  Registration registration = Registration::none;
};

/// Memory of the other end, for write and read.
struct RemoteRegion {
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::uint32_t rkey = 0;
};
nlohmann::json to_json(const Region& region);  ///< what the other end needs to make a RemoteRegion
RemoteRegion remote_region(const nlohmann::json& j);

struct SendRequest {
  std::uint64_t id = 0;  ///< comes back in the completion
  std::uint32_t queue_pair = 0;
  Op op = Op::send;
  std::byte* address = nullptr;  ///< source; destination for read
  std::uint32_t length = 0;
  std::uint32_t lkey = 0;
  std::uint64_t remote_address = 0;  ///< write, write_imm and read
  std::uint32_t rkey = 0;
  std::uint32_t immediate = 0;  ///< write_imm
  bool signaled = true;         ///< an unsignaled request completes silently, before any later signaled one
  bool inline_data = false;     ///< the data may be reused when post_send returns
};

struct ReceiveRequest {
  std::uint64_t id = 0;
  std::uint32_t queue_pair = 0;
  std::byte* address = nullptr;
  std::uint32_t length = 0;
  std::uint32_t lkey = 0;
};

struct Completion {
  enum class Kind : std::uint8_t { sent, received };
  std::uint64_t id = 0;
  Kind kind = Kind::sent;
  std::uint32_t queue_pair = 0;
  std::uint32_t status =
      0;  ///< 0 is success; else an ibv_wc_status. Then only id, queue pair and vendor_error count
  std::uint32_t vendor_error = 0;
  std::uint32_t length = 0;  ///< bytes received
  std::uint32_t immediate = 0;
  bool has_immediate = false;
};

/// IBV_WC_WR_FLUSH_ERR: the consequence of an earlier error, never its cause.
inline constexpr std::uint32_t flush_status = 5;

/// What tells apart the causes of one status.
struct StatusContext {
  std::uint32_t vendor_error = 0;
  bool on_gpu = false;  ///< whether the wire's own memory of the request is a GPU's
  FabricKind fabric = FabricKind::hardware;
};
/// "IBV_WC_RETRY_EXC_ERR (12), vendor error 0x81: <usual cause; what to try>", and where there is one the
/// check of the doctor that would see the cause.
std::string describe_status(std::uint32_t status, const StatusContext& where);

/// How many requests a queue pair must be able to hold, and which queue pairs there are.
struct WireLimits {
  std::uint32_t queue_pairs = 1;
  std::uint32_t send_depth = 16;     ///< outstanding send requests a queue pair
  std::uint32_t receive_depth = 16;  ///< outstanding receive requests a queue pair
  std::uint32_t inline_bytes = 0;    ///< largest inline request wanted
  CompletionMode completion = CompletionMode::poll;
  std::uint32_t threads = 0;  ///< that move sockets beside the one that polls; a NIC needs none
};

/// What a wire offers. post_send and post_receive return 0 or an errno value (ENOMEM: queue full). poll
/// returns the number of completions written and never blocks. wait sleeps until a completion may be there,
/// `extra_fd` (−1: none) is readable, or `timeout_ms` is over; spurious wake-ups are allowed. After wait,
/// poll until empty before waiting again.
template <class W>
concept Wire = requires(W w, const MemoryView& view, const SendRequest& send, const ReceiveRequest& receive,
                        std::span<Completion> out, const nlohmann::json& remote,
                        std::vector<Socket> sockets) {
  { w.register_memory(view) } -> std::same_as<Region>;
  { w.offer() } -> std::same_as<nlohmann::json>;  // what the remote end's connect() needs
  {w.connect(remote, std::move(sockets))};        // both ends, in any order; returns when traffic may flow
  { w.post_send(send) } -> std::same_as<int>;
  { w.post_receive(receive) } -> std::same_as<int>;
  { w.poll(out) } -> std::same_as<std::size_t>;
  {w.wait(int{} /* extra_fd */, int{} /* timeout_ms */)};
  { w.max_message() } -> std::same_as<std::uint64_t>;   // bytes in one request
  { w.inline_bytes() } -> std::same_as<std::uint32_t>;  // largest inline request granted
  { w.fabric() } -> std::same_as<FabricKind>;           // none where no RDMA device has a part
  {w.describe()};                                       // TcpProof, VerbsProof or IpcProof
  { W::one_sided_needs_target_cpu } -> std::convertible_to<bool>;
};

}  // namespace gdrbench::wire
