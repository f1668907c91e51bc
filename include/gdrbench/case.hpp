#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace gdrbench {

/// How the payload travels. A path is a staging policy over a wire.
enum class Path { tcp, rdma, gdr, peer, tcp_wire, rdma_wire };
enum class Op { send, write, write_imm, read };
/// Where the payload starts and ends. With `host` it stands in for GPU memory: staging copies still happen.
enum class MemoryKind { host, cuda, cuda_vmm };
/// How GPU or host memory was made known to the NIC; `none` for sockets, `ipc` (no NIC) for the peer path.
enum class Registration { none, host, peermem, dmabuf, ipc };
/// Which way of registering GPU memory is taken; automatic: as dma-buf where there is one, else as peer
/// memory.
enum class RegisterBy { automatic, dmabuf, peermem };
enum class FabricKind { none, hardware, soft_roce, softverbs };
enum class Suite { latency, bandwidth, visible, overlap };
/// What the GPUs of both ends compute beside an overlap case.
enum class Load { none, compute, memory };
/// Seen from the initiator, the end that measures.
enum class Direction { forward, reverse, both };
enum class CompletionMode { poll, event };
/// pipelined: chunks, pinned, copies and wire overlapped; automatic: pipelined, with engine and chunk size
/// chosen for each message size by a short calibration; plain: one copy, then the wire; pageable: plain from
/// memory that is not pinned for the GPU.
enum class Staging { automatic, pipelined, plain, pageable };
/// What copies between GPU and bounce memory. kernel: one that stays on the GPU, for small pieces; gdrcopy:
/// the CPU, through the GPU's BAR as mapped by that library.
enum class CopyEngine { automatic, copy_engine, kernel, gdrcopy };
/// Who moves the queue pairs to RTS: our control channel, or librdmacm.
enum class ConnectBy { control, rdma_cm };
/// On which cores an end runs; automatic: next to its NIC and GPU, where the user has not bound it.
enum class BindBy { automatic, none };

/// The names of an enumeration in flags, JSON and tables, in order of preference.
template <class E>
struct EnumNames;

#define GDRBENCH_ENUM_NAMES(E, what_, ...)                                   \
  template <>                                                                \
  struct EnumNames<E> {                                                      \
    static constexpr std::string_view what = what_;                          \
    static constexpr std::pair<E, std::string_view> names[] = {__VA_ARGS__}; \
  }

GDRBENCH_ENUM_NAMES(Path, "path", {Path::tcp, "tcp"}, {Path::rdma, "rdma"}, {Path::gdr, "gdr"},
                    {Path::peer, "peer"}, {Path::tcp_wire, "tcp_wire"}, {Path::rdma_wire, "rdma_wire"});
GDRBENCH_ENUM_NAMES(Op, "op", {Op::send, "send"}, {Op::write, "write"}, {Op::write_imm, "write_imm"},
                    {Op::read, "read"});
GDRBENCH_ENUM_NAMES(MemoryKind, "memory", {MemoryKind::host, "host"}, {MemoryKind::cuda, "cuda"},
                    {MemoryKind::cuda_vmm, "cuda_vmm"});
GDRBENCH_ENUM_NAMES(Registration, "registration", {Registration::none, "none"}, {Registration::host, "host"},
                    {Registration::peermem, "peermem"}, {Registration::dmabuf, "dmabuf"},
                    {Registration::ipc, "ipc"});
GDRBENCH_ENUM_NAMES(RegisterBy, "registration", {RegisterBy::automatic, "auto"},
                    {RegisterBy::dmabuf, "dmabuf"}, {RegisterBy::peermem, "peermem"});
GDRBENCH_ENUM_NAMES(FabricKind, "fabric", {FabricKind::none, "none"}, {FabricKind::hardware, "hardware"},
                    {FabricKind::soft_roce, "soft-roce"}, {FabricKind::softverbs, "softverbs"});
GDRBENCH_ENUM_NAMES(Suite, "suite", {Suite::latency, "latency"}, {Suite::bandwidth, "bandwidth"},
                    {Suite::visible, "visible"}, {Suite::overlap, "overlap"});
GDRBENCH_ENUM_NAMES(Load, "load", {Load::none, "none"}, {Load::compute, "compute"}, {Load::memory, "memory"});
GDRBENCH_ENUM_NAMES(Direction, "direction", {Direction::forward, "forward"}, {Direction::reverse, "reverse"},
                    {Direction::both, "both"});
GDRBENCH_ENUM_NAMES(CompletionMode, "completion", {CompletionMode::poll, "poll"},
                    {CompletionMode::event, "event"});
GDRBENCH_ENUM_NAMES(Staging, "staging", {Staging::automatic, "auto"}, {Staging::pipelined, "pipelined"},
                    {Staging::plain, "plain"}, {Staging::pageable, "pageable"});
GDRBENCH_ENUM_NAMES(CopyEngine, "staging engine", {CopyEngine::automatic, "auto"},
                    {CopyEngine::copy_engine, "copy_engine"}, {CopyEngine::kernel, "kernel"},
                    {CopyEngine::gdrcopy, "gdrcopy"});
GDRBENCH_ENUM_NAMES(ConnectBy, "connect", {ConnectBy::control, "control"}, {ConnectBy::rdma_cm, "rdma_cm"});
GDRBENCH_ENUM_NAMES(BindBy, "bind", {BindBy::automatic, "auto"}, {BindBy::none, "none"});

#undef GDRBENCH_ENUM_NAMES

template <class E>
constexpr std::string_view to_string(E value) {
  for (const auto& [candidate, name] : EnumNames<E>::names)
    if (candidate == value) return name;
  return "?";
}

/// Throws UsageError that names the value and lists what is accepted.
[[noreturn]] void throw_unknown_name(std::string_view what, std::string_view value,
                                     const std::string& accepted);

template <class E>
E from_name(std::string_view value) {
  std::string accepted;
  for (const auto& [candidate, name] : EnumNames<E>::names) {
    if (name == value) return candidate;
    accepted += (accepted.empty() ? "" : ", ") + std::string(name);
  }
  throw_unknown_name(EnumNames<E>::what, value, accepted);
}

/// Staged paths copy through pinned host memory; Direct ones leave the payload where it is.
constexpr bool is_staged(Path path) {
  return path == Path::tcp || path == Path::rdma;
}
constexpr bool uses_verbs(Path path) {
  return path == Path::rdma || path == Path::gdr || path == Path::rdma_wire;
}
/// The baselines always keep their payload in host memory.
constexpr bool is_baseline(Path path) {
  return path == Path::tcp_wire || path == Path::rdma_wire;
}

/// One message at a time, each of them timed; the others time a stream of messages.
constexpr bool times_messages(Suite suite) {
  return suite == Suite::latency || suite == Suite::visible;
}

/// Both ends get the same, so that their bounce memory is laid out alike; the engine is each end's own
/// choice.
struct StagingOptions {
  Staging variant = Staging::automatic;
  CopyEngine engine = CopyEngine::automatic;
  std::uint64_t chunk_bytes = std::uint64_t{256}
                              << 10;  ///< largest piece copied and sent at once; ignored by plain
  std::uint32_t slots = 0;            ///< chunks in flight each way on a lane; 0: as many as bounce.hpp says
  std::uint32_t streams = 1;          ///< of the copy engine, each way on a lane
  bool operator==(const StagingOptions&) const = default;
};
/// Chunked, with copies and wire overlapped.
constexpr bool is_pipelined(Staging variant) {
  return variant == Staging::automatic || variant == Staging::pipelined;
}

/// Verbs settings of both ends. Empty device or absent index: chosen by the rules of docs/methodology.md.
struct VerbsOptions {
  std::string device;
  std::optional<int> gid_index;
  std::uint8_t port = 1;
  std::uint32_t path_mtu = 0;  ///< bytes; 0: min of both active MTUs
  std::uint8_t timeout = 14;   ///< local ACK timeout, 4.096 µs × 2^timeout (IBTA 9.7.6.1.3)
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry = 7;      ///< 7: for ever
  std::uint8_t min_rnr_timer = 1;  ///< code of IBTA table 45; 1 is 0.01 ms, 0 would be 655 ms
  std::uint8_t service_level = 0;
  std::uint8_t traffic_class = 0;
  std::uint32_t inline_bytes = 220;  ///< messages up to this size in host memory are posted inline
  ConnectBy connect = ConnectBy::control;
  bool relaxed_ordering = true;
  RegisterBy registration = RegisterBy::automatic;  ///< of GPU memory
  bool operator==(const VerbsOptions&) const = default;
};

/// One measured point. The initiator makes it; the responder gets it with the fields of its own end
/// (`verbs.device`, `verbs.gid_index`, `gpu`) swapped in.
struct Case {
  Suite suite = Suite::latency;
  Path path = Path::tcp;
  Op op = Op::send;
  MemoryKind memory = MemoryKind::host;
  CompletionMode completion = CompletionMode::poll;
  Direction direction = Direction::forward;
  std::uint64_t size_bytes = 8;
  std::uint32_t depth = 16;  ///< messages in flight on each queue pair
  std::uint32_t queue_pairs = 1;
  std::uint64_t footprint_bytes = std::uint64_t{64}
                                  << 20;  ///< payload buffers rotate through at least this much memory
  int gpu = 0;
  bool shares_gpu = false;  ///< both ends run on one GPU, whose kernels then take turns
  Load load = Load::none;   ///< overlap
  BindBy bind = BindBy::automatic;
  std::optional<std::uint32_t> tcp_threads{};  ///< that move the sockets of an end; absent: its own choice
  StagingOptions staging{};
  VerbsOptions verbs{};
  bool operator==(const Case&) const = default;
};

/// "latency/gdr/send/8": the name of the case in tables and in Google Benchmark's output.
std::string case_name(const Case& c);

}  // namespace gdrbench
