#pragma once

#include <cstdint>

#include "gdrbench/names.hpp"

/// The enumerations that a case is made of, with their names in flags, JSON and tables.
namespace gdrbench {

enum class Op { send, write, write_imm, read };
/// A set of operations, a bit each.
using OpSet = std::uint8_t;
constexpr OpSet operator|(Op a, Op b) {
  return static_cast<OpSet>(1U << static_cast<unsigned>(a) | 1U << static_cast<unsigned>(b));
}
constexpr OpSet operator|(OpSet set, Op op) {
  return static_cast<OpSet>(set | 1U << static_cast<unsigned>(op));
}
constexpr bool contains(OpSet set, Op op) {
  return (set >> static_cast<unsigned>(op) & 1U) != 0;
}
inline constexpr OpSet all_ops = Op::send | Op::write | Op::write_imm | Op::read;

/// Where the payload starts and ends. With `host` it stands in for GPU memory: staging copies still happen.
enum class MemoryKind { host, cuda, cuda_vmm };
/// How GPU or host memory was made known to the NIC; `none` for sockets, `ipc` (no NIC) for the p2p path.
enum class Registration { none, host, peermem, dmabuf, ipc };
/// Which way of registering GPU memory is taken; automatic: as dma-buf where there is one, else as peer
/// memory.
enum class RegisterBy { automatic, dmabuf, peermem };
enum class FabricKind { none, hardware, soft_roce, softverbs };
/// What the GPUs of both ends compute beside an overlap case.
enum class Load { none, compute, memory };
/// Seen from the initiator, the rank that measures.
enum class Direction { forward, reverse, both };
enum class CompletionMode { poll, event };
/// pipelined: chunks, pinned, copies and wire overlapped; automatic: pipelined, with engine and chunk size
/// chosen for each message size by a short calibration; plain: one copy, then the wire; pageable: plain from
/// memory that is not pinned for the GPU.
enum class Staging { automatic, pipelined, plain, pageable };
/// What copies between GPU and staging buffers. kernel: one that stays on the GPU, for small pieces; gdrcopy:
/// the CPU, through the GPU's BAR as mapped by that library.
enum class CopyEngine { automatic, copy_engine, kernel, gdrcopy };
/// Who moves the queue pairs to RTS: our control channel, or librdmacm.
enum class ConnectBy { control, rdma_cm };
/// On which cores a rank runs; automatic: next to its NIC and GPU, where the user has not bound it.
enum class BindBy { automatic, none };

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

/// What lies between two PCI functions, nearest first; the classes of `nvidia-smi topo -m`.
/// pix: one switch or bridge at most; pxb: several, but no host bridge; phb: a host bridge, that of both;
/// node: host bridges of one NUMA node; sys: the link between NUMA nodes; unknown: sysfs does not tell.
enum class PciDistance { pix, pxb, phb, node, sys, unknown };
GDRBENCH_ENUM_NAMES(PciDistance, "PCI distance", {PciDistance::pix, "PIX"}, {PciDistance::pxb, "PXB"},
                    {PciDistance::phb, "PHB"}, {PciDistance::node, "NODE"}, {PciDistance::sys, "SYS"},
                    {PciDistance::unknown, "UNKNOWN"});

/// Chunked, with copies and wire overlapped.
constexpr bool is_pipelined(Staging variant) {
  return variant == Staging::automatic || variant == Staging::pipelined;
}

/// Software stands in for the NIC: no RDMA performance figures.
constexpr bool is_functional(FabricKind kind) {
  return kind == FabricKind::soft_roce || kind == FabricKind::softverbs;
}

}  // namespace gdrbench
