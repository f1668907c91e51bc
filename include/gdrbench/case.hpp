#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gdrbench/kinds.hpp"
#include "gdrbench/path.hpp"
#include "gdrbench/suite.hpp"

namespace gdrbench {

/// Both ends get the same, so that their staging buffers are laid out alike; the engine is each end's own
/// choice.
struct StagingOptions {
  Staging variant = Staging::automatic;
  CopyEngine engine = CopyEngine::automatic;
  std::uint64_t chunk_bytes = std::uint64_t{256}
                              << 10;  ///< largest piece copied and sent at once; ignored by plain
  std::uint32_t slots =
      0;  ///< chunks in flight each way on a queue pair; 0: as many as the layout of staging buffers says
  std::uint32_t streams = 1;  ///< of the copy engine, each way on a queue pair
  bool operator==(const StagingOptions&) const = default;
};
/// Of a queue pair: reliable connection, or unreliable connection, which acknowledges nothing and repeats
/// nothing.
enum class Transport { rc, uc };
GDRBENCH_ENUM_NAMES(Transport, "transport", {Transport::rc, "rc"}, {Transport::uc, "uc"});

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
  Transport transport = Transport::rc;
  ConnectBy connect = ConnectBy::control;
  bool relaxed_ordering = true;
  RegisterBy registration = RegisterBy::automatic;  ///< of GPU memory
  bool operator==(const VerbsOptions&) const = default;
};

/// One measured point. Each rank gets it with the fields of its own (`verbs.device`, `verbs.gid_index`,
/// `gpu`) swapped in.
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
  std::string pair{};               ///< "mlx5_0:gpu0" where several pairs of NIC and GPU are measured
  std::uint32_t pairs_at_once = 1;  ///< that this case runs on at the same time
  StagingOptions staging{};
  VerbsOptions verbs{};
  bool operator==(const Case&) const = default;
};

/// Messages may be lost without a completion that says so.
constexpr bool may_lose_messages(const Case& c) {
  return uses_verbs(c.path) && c.verbs.transport == Transport::uc;
}

/// "latency/gdr/send/8": the name of the case in tables and in Google Benchmark's output.
std::string case_name(const Case& c);

}  // namespace gdrbench
