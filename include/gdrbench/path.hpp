#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include "gdrbench/kinds.hpp"

/// The paths that are compared: a path is a staging policy over a wire. Everything that tells one path from
/// another stands in this table.
namespace gdrbench {

enum class Path { tcp, rdma, gdr, p2p, tcp_wire, rdma_wire };

/// tcp: sockets; verbs: queue pairs of an RDMA device; ipc: CUDA's copies between two GPUs of one node, past
/// any NIC.
enum class WireKind { tcp, verbs, ipc };
/// staged: the payload is copied to and from staging buffers in host memory, which the wire works on; direct:
/// the wire works on the payload where it lies.
enum class Policy { staged, direct };

struct PathSpec {
  Path path;
  std::string_view name;
  std::string_view help;  ///< the route of the payload
  WireKind wire;
  Policy policy;
  bool baseline = false;    ///< the payload is in host memory always: what the network alone gives
  bool by_default = false;  ///< measured where no paths are named
  bool needs_cuda = false;  ///< cudaMalloc memory at both ends, and no other kind
  bool has_events = true;   ///< completions can be waited for, not only polled
  OpSet ops = all_ops;
  std::span<const Path> compared_with = {};  ///< nearest relative first
};

namespace detail {
inline constexpr Path below_rdma[] = {Path::tcp};
inline constexpr Path below_gdr[] = {Path::rdma, Path::tcp};
inline constexpr Path below_p2p[] = {Path::gdr, Path::rdma, Path::tcp};
}  // namespace detail

/// In the order of columns and of help texts; a path's value is its place.
inline constexpr PathSpec all_paths[] = {
    {.path = Path::tcp,
     .name = "tcp",
     .help = "GPU, host memory, socket, host memory, GPU",
     .wire = WireKind::tcp,
     .policy = Policy::staged,
     .by_default = true},
    {.path = Path::rdma,
     .name = "rdma",
     .help = "GPU, pinned host memory, NIC, pinned host memory, GPU",
     .wire = WireKind::verbs,
     .policy = Policy::staged,
     .by_default = true,
     .compared_with = detail::below_rdma},
    {.path = Path::gdr,
     .name = "gdr",
     .help = "GPU, NIC, GPU: GPUDirect RDMA",
     .wire = WireKind::verbs,
     .policy = Policy::direct,
     .by_default = true,
     .compared_with = detail::below_gdr},
    {.path = Path::p2p,
     .name = "p2p",
     .help = "GPU, GPU of the same node: NVLink or PCIe, past any NIC",
     .wire = WireKind::ipc,
     .policy = Policy::direct,
     .needs_cuda = true,
     .has_events = false,
     .ops = Op::write | Op::read,
     .compared_with = detail::below_p2p},
    {.path = Path::tcp_wire,
     .name = "tcp_wire",
     .help = "host memory, socket, host memory: what sockets alone give",
     .wire = WireKind::tcp,
     .policy = Policy::direct,
     .baseline = true},
    {.path = Path::rdma_wire,
     .name = "rdma_wire",
     .help = "host memory, NIC, host memory: what the NIC alone gives",
     .wire = WireKind::verbs,
     .policy = Policy::direct,
     .baseline = true},
};

GDRBENCH_ENUM_NAMES(WireKind, "wire", {WireKind::tcp, "tcp"}, {WireKind::verbs, "verbs"},
                    {WireKind::ipc, "ipc"});
GDRBENCH_ENUM_NAMES(Policy, "policy", {Policy::staged, "staged"}, {Policy::direct, "direct"});

constexpr const PathSpec& spec(Path path) {
  return all_paths[static_cast<std::size_t>(path)];
}

template <>
struct EnumNames<Path> {
  static constexpr std::string_view what = "path";
  static constexpr auto names = [] {
    std::array<std::pair<Path, std::string_view>, std::size(all_paths)> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = {all_paths[i].path, all_paths[i].name};
    return all;
  }();
};

constexpr bool is_staged(Path path) {
  return spec(path).policy == Policy::staged;
}
constexpr bool uses_verbs(Path path) {
  return spec(path).wire == WireKind::verbs;
}
constexpr bool is_baseline(Path path) {
  return spec(path).baseline;
}

static_assert(
    [] {
      for (std::size_t i = 0; i < std::size(all_paths); ++i)
        if (all_paths[i].path != static_cast<Path>(i)) return false;
      return true;
    }(),
    "a path's row is at its value");

}  // namespace gdrbench
